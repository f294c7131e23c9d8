// The document and the text of a fused plan: the contract's keys, whole bytes, unknown values named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/machine/registry.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/report/csv.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/fuse/plan_text.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

std::variant<FusePlans, FuseInfeasible> outcome_of(const Machine& machine, std::string_view text) {
    std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16[512,1024]")};
    if (text.find(" b") != text.npos) tensors.push_back(tensor_declaration("b:bf16[1024]"));
    return derive(machine, expression_graph(text, tensors));
}

TEST(FuseDocument, HasTheContractsKeys) {
    const Machine machine = machine_by_id("h100-sxm");
    const Json d = plan_document(context_of(machine, "test"), fuse_plan_set(outcome_of(machine, "y = gelu(x + b)")));
    EXPECT_EQ(d.at("schema"), "rooftile/plan/1");
    EXPECT_EQ(d.at("problem").at("op"), "fuse");
    // x + b stores bf16: 2 x 1 MiB + 2 KiB; gelu 2 x 1 MiB. Fused: x, b and y.
    EXPECT_EQ(d.at("unfused").at("moved_bytes"), 4 * 1048576 + 2048);
    EXPECT_EQ(d.at("unfused").at("kernels"), 2);
    EXPECT_EQ(d.at("fused").at("moved_bytes"), 2 * 1048576 + 2048);
    EXPECT_EQ(d.at("fused").at("kernels"), 1);
    for (const char* part : {"fused", "unfused"})
        for (const char* key : {"moved_bytes", "dram_bytes", "time_us", "kernels"})
            EXPECT_FALSE(d.at(part).at(key).is_null()) << part << '.' << key;
    const Json& plan = d.at("plans").at(0);
    for (const char* key : {"rank", "buildable", "config", "resources", "prediction", "derivation"})
        EXPECT_TRUE(plan.contains(key)) << key;
    EXPECT_EQ(plan.at("unknown"), Json({"prediction.interval_us"}));  // which Operation::derive() adds
    for (const Json& step : plan.at("derivation"))
        for (const char* key : {"quantity", "formula", "inputs", "value", "unit", "limit"})
            EXPECT_TRUE(step.contains(key)) << key;
}

TEST(FuseDocument, FollowsItsSchema) {
    const JsonSchema schema("plan-1.json");
    const Machine machine = machine_by_id("h200-sxm");
    Machine bare;
    bare.id = "bare";
    for (const Machine& m : {machine, bare})
        for (const char* text : {"y = gelu(x + b)", "y = softmax(x + b)", "y = sum_all(x)", "y = argmax(x)",
                                 "y = (x + b) / sum_all(x)"}) {
            const PlanSet plans = fuse_plan_set(outcome_of(m, text));
            const auto records = explanation_records(explain(m, plans, {Depth::all}));
            EXPECT_EQ(schema.faults(plan_document(context_of(m, "test"), plans, records)), "") << text;
        }
}

TEST(FuseDocument, OneOperatorTakesTheSameTimeFusedAndUnfused) {
    for (const char* id : {"h200-sxm", "a100-80-sxm"})
        for (const char* text : {"y = softmax(x)", "y = x + b", "y = gelu(x)", "y = sum(x)", "y = x"}) {
            const Machine machine = machine_by_id(id);
            const auto plans = std::get<FusePlans>(outcome_of(machine, text));
            EXPECT_EQ(plans.unfused.moved_bytes, plans.fused.moved_bytes) << text;
            EXPECT_EQ(plans.unfused.time_us, plans.fused.time_us) << text;
            EXPECT_EQ(plans.plans.front().prediction.speedup, 1) << text;
        }
    // A result told twice is stored twice either way.
    const auto twice = std::get<FusePlans>(outcome_of(machine_by_id("h200-sxm"), "h = x * 2; y = h; z = h"));
    EXPECT_EQ(twice.operators.size(), 2u);
    EXPECT_GT(*twice.unfused.moved_bytes, *twice.fused.moved_bytes);
    // Two operators are two launches.
    const auto two = std::get<FusePlans>(outcome_of(machine_by_id("h200-sxm"), "y = gelu(x + b)"));
    EXPECT_GT(*two.unfused.time_us, *two.fused.time_us);
}

TEST(FuseDocument, AsCommaSeparatedValues) {
    const Machine machine = machine_by_id("h200-sxm");
    const Json d = plan_document(context_of(machine, "test"), fuse_plan_set(outcome_of(machine, "y = softmax(x + b)")));
    const std::string text = csv_text(d);
    const size_t end = text.find("\r\n");
    const std::string header = text.substr(0, end),
                      line = text.substr(end + 2, text.find("\r\n", end + 2) - end - 2);
    EXPECT_EQ(size_t(std::count(text.begin(), text.end(), '\n')), 1 + d.at("plans").size());
    for (const char* title :
         {"expression", "tensors", "row_storage", "bytes_in_flight", "time_us", "speedup"})
        EXPECT_THAT("," + header + ",", testing::HasSubstr("," + std::string(title) + ","));
    EXPECT_THAT(header, testing::Not(testing::HasSubstr("tile_m")));
    EXPECT_THAT(line, testing::StartsWith("h200-sxm,fuse,y = softmax(x + b),\"x:bf16["));
    // What a machine does not tell are empty cells, and nothing but the header where nothing fits.
    Machine bare;
    bare.id = "bare";
    EXPECT_THAT(csv_text(plan_document(context_of(bare, "test"), fuse_plan_set(outcome_of(bare, "y = gelu(x + b)")))),
                testing::HasSubstr("\r\nbare,fuse,"));
    const Json none =
        plan_document(context_of(machine, "test"), fuse_plan_set(outcome_of(machine, "y = (x + b) / sum_all(x)")));
    EXPECT_EQ(csv_text(none), "machine,op,expression,tensors,outputs\r\n");
}

TEST(FuseDocument, NamesWhatIsUnknownAndWhatCannotBe) {
    Machine bare;
    bare.id = "bare";
    const Json d = plan_document(context_of(bare, "test"), fuse_plan_set(outcome_of(bare, "y = gelu(x + b)")));
    const Json& plan = d.at("plans").at(0);
    EXPECT_TRUE(plan.at("prediction").at("time_us").is_null());
    EXPECT_THAT(plan.at("unknown").dump(), testing::HasSubstr("prediction.time_us"));
    EXPECT_EQ(plan.at("buildable"), false);
    const Machine machine = machine_by_id("h100-sxm");
    const Json none =
        plan_document(context_of(machine, "test"), fuse_plan_set(outcome_of(machine, "y = (x + b) / sum_all(x)")));
    EXPECT_TRUE(none.at("plans").empty());
    EXPECT_EQ(none.at("unfused").at("kernels"), 3);
    EXPECT_THAT(std::string(none.at("infeasible").at("message")), testing::HasSubstr("whole reduction"));
}

TEST(FuseText, ShowsCountingPlansAndReasons) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto outcome = outcome_of(machine, "y = softmax(x + b)");
    const PlanSet plans = fuse_plan_set(outcome);
    const PlanDetail detail{Depth::all};
    const std::string text = plan_text(plans, detail, explain(machine, plans, detail),
                                                   {.color = false, .utf8 = false, .width = 100});
    for (const char* part : {"softmax(x + b)", "unfused", "fused", "% of the bytes", "bytes_in_flight_needed",
                             "Why plan 1", "datasheet roof", "Why not the others", "no single hardware number"})
        EXPECT_THAT(text, testing::HasSubstr(part));
    EXPECT_EQ(text.find('\033'), text.npos);
}

// CTAs that share a tile's rows are what plans of columns differ in; where none do there is no column of ones.
TEST(FuseText, ShowsRowSplitsWhereAPlanHasThem) {
    const auto text_of = [](const char* tensor) {
        const Machine machine = machine_by_id("h200-sxm");
        const TensorDeclaration x[] = {tensor_declaration(tensor)};
        const PlanSet plans = fuse_plan_set(derive(machine, expression_graph("y = column_sum(x)", x)));
        return plan_text(plans, {}, {}, {.color = false, .utf8 = false, .width = 160});
    };
    EXPECT_THAT(text_of("x:fp32[100000,64]"), testing::ContainsRegex("threads +row splits +CTAs/SM"));
    EXPECT_THAT(text_of("x:fp32[1,1]"), testing::Not(testing::HasSubstr("row splits")));
}

}  // namespace
}  // namespace rooftile
