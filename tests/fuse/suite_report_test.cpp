// Hand-made rows of fused kernels in, figures and missed bars out.
#include "rooftile/fuse/suite_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rooftile/machine/registry.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/fuse/suite.hpp"
#include "rooftile/report/measurement.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Machine& h200() {
    static const Machine machine = machine_by_id("h200-sxm");
    return machine;
}

DocumentContext context() {
    DocumentContext c = context_of(h200(), "test");
    c.gpu = GpuContext{"NVIDIA H200", "580", "13.0", "2026-01-01T00:00:00Z", 1};
    return c;
}

struct Made {
    std::string expression, group;
    std::int64_t columns = 4096;
    double roof_us = 100, us = 100, predicted = 100;
    std::vector<double> others{};  ///< times of the plans behind the first
    bool reads = false;
    std::optional<double> issue_roof_us{};
};

std::vector<Measurement> rows_of(const Made& made) {
    const std::vector<TensorDeclaration> tensors = {
        tensor_declaration("x:bf16[64," + std::to_string(made.columns) + "]")};
    const ExpressionGraph problem = expression_graph(made.expression, tensors);
    const auto outcome = derive(h200(), problem, {.top = 1});
    std::vector<Measurement> rows;
    std::vector<double> times = {made.us};
    times.insert(times.end(), made.others.begin(), made.others.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
        Measurement& row = rows.emplace_back();
        FusePlan plan = std::get<FusePlans>(outcome).plans.front();
        plan.rank = int(i) + 1;
        plan.prediction.time_us = made.predicted;
        row.plan = any_plan(std::move(plan));
        row.plans = int(times.size());
        row.layers = {{made.group, std::to_string(made.columns)}};
        row.time_us = times[i];
        row.roof = made.reads ? "read" : "copy";
        row.roof_fraction = made.roof_us / times[i];
        row.baselines = {{.key = row.roof, .time_us = made.roof_us},
                         {.key = "memcpy", .time_us = made.roof_us + 1},
                         {.key = "unfused", .time_us = 3 * made.us, .same_work = true}};
        row.more = {{"issue_roof_us", made.issue_roof_us}};
        if (i > 0) row.rank1_ratio = times[0] / times[i];
        row.verified.random = true;
        row.registers = 32;
    }
    return rows;
}

Json first_line() { return context_line(measurement_document(context(), {})); }

/// The set of a problem that no plan fits.
PlanSet refused(const std::string& expression, const std::string& message) {
    FuseInfeasible none;
    none.problem = expression_graph(expression, std::vector{tensor_declaration("x:bf16[64,64]")});
    none.message = message;
    return fuse_plan_set(none);
}

FuseSuiteReport report_of(const std::vector<Made>& all) {
    Json line = first_line();
    line["context"]["program_hash"] = "abc";
    line["suite"] = "made";
    std::string text = json_text(line, -1);
    for (const Made& made : all)
        for (const Json& row : measurement_lines(context(), rows_of(made), {})) text += json_text(row, -1);
    return fuse_suite_report(read_suite_record(text, "made.jsonl"));
}

const FuseBar& bar(const FuseSuiteReport& report, std::string_view name) {
    for (const FuseBar& b : report.bars)
        if (b.name.find(name) != std::string::npos) return b;
    ADD_FAILURE() << "no bar " << name;
    return report.bars.front();
}

TEST(FuseSuiteReport, EveryKindHasItsBar) {
    const FuseSuiteReport r = report_of({
        {.expression = "y = x + 1", .group = "point", .us = 100 / 0.98},
        {.expression = "y = gelu(x)", .group = "issue", .us = 125, .predicted = 125, .issue_roof_us = 120},
        {.expression = "y = softmax(x)", .group = "row", .us = 100 / 0.93},
        {.expression = "y = softmax(x)", .group = "edge", .columns = 256, .us = 125},
        {.expression = "y = sum(x)", .group = "sum", .us = 100 / 0.96, .reads = true},
    });
    ASSERT_EQ(r.problems.size(), 5u);
    EXPECT_EQ(r.problems[0].kind, FuseKind::pointwise);
    EXPECT_EQ(r.problems[1].kind, FuseKind::pointwise_issue);
    EXPECT_NEAR(*r.problems[1].share, 0.96, 1e-9);  // 120 / 125, though a copy takes 100
    EXPECT_EQ(r.problems[2].kind, FuseKind::row);
    EXPECT_EQ(r.problems[3].kind, FuseKind::edge_row);
    EXPECT_NEAR(*r.problems[3].share, 0.8, 1e-9);
    EXPECT_EQ(r.problems[4].kind, FuseKind::reading);
    EXPECT_NEAR(*r.problems[4].speedup, 3, 1e-9);
    // Predictions of 100, once 125: off by 2, 0, 7, 20 and 4 %.
    EXPECT_NEAR(*bar(r, "mean error").worst, (0.02 + 0 + 0.07 + 0.20 + 0.04) / 5, 1e-9);
    EXPECT_EQ(bar(r, "worst error").where, "edge 256");
    EXPECT_THAT(missed_bars(r), ElementsAre(HasSubstr("mean error: 6.6 % (all); wanted 5.0 %"),
                                            HasSubstr("worst error: 20.0 % (edge 256); wanted 15.0 %")));
    const std::string text = suite_text(r, {.color = false, .utf8 = false, .width = 200});
    EXPECT_THAT(text, HasSubstr("5 problems of suite made"));
    EXPECT_THAT(text, HasSubstr("MISSED"));
    EXPECT_THAT(suite_markdown(r), HasSubstr("| sums and maxima, of read | \\>= 0.950 | 1 | 0.960 | OK |"));
}

TEST(FuseSuiteReport, AMissIsNamed) {
    const auto missed = [](const Made& made) {
        auto lines = missed_bars(report_of({made}));
        std::erase_if(lines, [](const std::string& line) { return line.ends_with("is of this kind"); });
        return lines;
    };
    EXPECT_THAT(missed({.expression = "y = x + 1", .group = "good"}), IsEmpty());
    EXPECT_THAT(missed({.expression = "y = x + 1", .group = "p", .us = 104, .predicted = 104}),
                ElementsAre(HasSubstr("point-wise, of copy: 0.962 (p 4096); wanted 0.970")));
    EXPECT_THAT(missed({.expression = "y = softmax(x)", .group = "r", .us = 110, .predicted = 110}),
                ElementsAre(HasSubstr("rows of 1024 to 262144, of copy: 0.909 (r 4096)")));
    EXPECT_THAT(
        missed({.expression = "y = max(x)", .group = "m", .us = 110, .predicted = 110, .reads = true}),
        ElementsAre(HasSubstr("sums and maxima, of read: 0.909 (m 4096)")));
    // Plan 2 takes 90 of plan 1's 100 us: plan 1 is 11 % slower.
    EXPECT_THAT(missed({.expression = "y = x + 1", .group = "b", .others = {120, 90}}),
                ElementsAre(HasSubstr("plan 1 slower than the best of its own: 11.1 % (b 4096)")));
}

// Which point-wise problems are bound by issue is up to the plans: there may be none.
TEST(FuseSuiteReport, ABarOfNoProblemDoesNotHold) {
    const FuseSuiteReport r = report_of({{.expression = "y = x + 1", .group = "good"}});
    EXPECT_THAT(missed_bars(r),
                ElementsAre(HasSubstr("rows of 1024 to 262144, of copy: none of the problems"),
                            HasSubstr("shorter and longer rows, of copy: none"),
                            HasSubstr("sums and maxima, of read: none")));
    EXPECT_THAT(suite_markdown(r), HasSubstr("| sums and maxima, of read | \\>= 0.950 | 0 | - | none |"));
}

TEST(FuseSuiteReport, WhatHasNoResultIsAMiss) {
    const std::string text =
        json_text(first_line(), -1)
        + json_text(infeasible_line(context(), refused("y = x + 1", "too much"), {{"g", "64x64 bf16"}}, Mode::cold), -1);
    const Suite suite = fuse_suite(
        "schema = \"rooftile/suite/1\"\nname = \"s\"\nop = \"fuse\"\ntypes = [\"bf16\"]\n[[group]]\nname = "
        "\"h\"\nexpression = \"y = x + 2\"\ntensors = [\"x:TYPE[ROWS,COLUMNS]\"]\nshapes = [[64, 64]]\n",
        "s.toml");
    const FuseSuiteReport r = fuse_suite_report(read_suite_record(text, "f"), &suite);
    EXPECT_EQ(r.mode, "cold");
    EXPECT_THAT(missed_bars(r), Contains(HasSubstr("g 64x64 bf16: no result: no plan fits: too much")));
    EXPECT_THAT(missed_bars(r), Contains(HasSubstr("1 problems of the suite are not measured, the first h")));
}

TEST(FuseMeasurementDocument, FollowsItsSchema) {
    const JsonSchema schema("measurement-1.json");
    const auto rows = rows_of({.expression = "y = gelu(x)", .group = "g", .others = {90}, .issue_roof_us = 95});
    EXPECT_EQ(schema.faults(measurement_document(context(), rows)), "");
    Json suite = first_line();
    suite["suite"] = "s";
    suite["rows"] = {infeasible_line(context(), refused("y = gelu(x)", "too much"), {}, Mode::burst)};
    suite["rows"][0].erase("machine");
    EXPECT_EQ(schema.faults(suite), "");
}

}  // namespace
}  // namespace rooftile
