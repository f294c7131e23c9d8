#include "rooftile/report/csv.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/report/measurement.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/json_schema.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

nlohmann::json parsed(const Json& document) { return nlohmann::json::parse(json_text(document)); }

TEST(Json, PlanDocumentFollowsItsSchema) {
    const JsonSchema schema("plan-1.json");
    EXPECT_EQ(schema.faults(parsed(plan_document(sample::context(), gemm_plan_set(sample::plans())))), "");
    EXPECT_EQ(schema.faults(parsed(plan_document(sample::context(), gemm_plan_set(sample::infeasible())))), "");
}

TEST(Json, ExplanationsFollowTheSchema) {
    const JsonSchema schema("plan-1.json");
    std::vector<Explanation> explanations = sample::explanations();
    explanations[1].energy = sample::partly_known_energy();
    const auto document = parsed(
        plan_document(sample::context(), gemm_plan_set(sample::plans()), explanation_records(explanations)));
    EXPECT_EQ(schema.faults(document), "");
    std::int64_t sum = 0;
    const auto& steps = document.at("plans")[0].at("attainability");
    for (const auto& step : steps) sum += step.at("cost_ns").get<std::int64_t>();
    EXPECT_EQ(sum, 600000);
    EXPECT_EQ(steps.back().at("time_ns"), sum);
    EXPECT_FALSE(document.at("plans")[1].contains("attainability"));
    EXPECT_FALSE(document.at("plans")[0].contains("counterfactuals"));
    ASSERT_EQ(document.at("plans")[1].at("counterfactuals").size(), 4u);
    EXPECT_EQ(document.at("plans")[1].at("counterfactuals")[2].at("wins"), "below");
    EXPECT_TRUE(document.at("plans")[1].at("energy").at("total_j").is_null());
    EXPECT_EQ(document.at("plans")[1].at("energy").at("unknown"), nlohmann::json({"energy.dram"}));
}

TEST(Json, AMeasuredLadderEndsWithTheMeasurement) {
    const JsonSchema schema("measurement-1.json");
    Measurement wrong = sample::measurement();
    wrong.invalid = "no";
    wrong.explanation = sample::explanations().front();
    const auto document =
        parsed(measurement_document(sample::gpu_context(), {sample::explained_measurement(), wrong}));
    EXPECT_EQ(schema.faults(document), "");
    const auto& rows = document.at("rows");
    EXPECT_EQ(rows[0].at("attainability").back().at("step"), "measured");
    EXPECT_EQ(rows[0].at("attainability").back().at("cost_ns"), 50000);
    EXPECT_NEAR(rows[0].at("energy").at("measured_j").get<double>(), 0.4485, 1e-12);
    EXPECT_EQ(rows[1].at("attainability").back().at("step"), "launch");
    EXPECT_TRUE(rows[1].at("energy").at("measured_j").is_null());
}

TEST(Json, AblationFollowsTheSchema) {
    const auto document =
        parsed(measurement_document(sample::gpu_context(), {sample::ablated_measurement()}));
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    const auto& study = document.at("rows")[0].at("ablation");
    EXPECT_EQ(study.at("term"), "loads");
    EXPECT_EQ(study.at("parts")[0].at("attributed_us"), 41);
    EXPECT_TRUE(study.at("parts")[1].at("time_us").is_null());
    EXPECT_EQ(study.at("parts")[1].at("predicted_time_us"), 300);
}

TEST(Json, AnotherLaunchStandsBesideThePlanned) {
    const auto document = parsed(measurement_document(sample::gpu_context(), {sample::launched_twice(), sample::wrong()}));
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    const auto& off = document.at("rows")[0].at("variants").at("pdl_off");
    EXPECT_EQ(off.at("time_us"), 652);
    EXPECT_EQ(off.at("predicted_time_us"), 600.85);
    EXPECT_EQ(off.at("ratio"), 0.978);
    EXPECT_TRUE(document.at("rows")[1].at("variants").empty());
    const std::string csv = csv_text(measurement_document(sample::gpu_context(), {sample::launched_twice()}));
    for (const char* column : {"variants_pdl_off_time_us", "variants_pdl_off_ratio", "variants_pdl_off_predicted_time_us"})
        EXPECT_NE(csv.find(column), std::string::npos) << column;
}

/// A row that was not timed names the baselines all the same.
TEST(Json, BaselinesAreNullWhereNoneWasTimed) {
    Measurement untimed = sample::measurement();
    untimed.baselines.clear();
    const auto document = parsed(measurement_document(sample::gpu_context(), {untimed}));
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    for (const char* key : {"cublaslt_top1_us", "cublaslt_best_us", "cublaslt_ratio", "copy_us"})
        EXPECT_TRUE(document.at("rows")[0].at("baselines").at(key).is_null()) << key;
}

TEST(Json, MeasurementDocumentFollowsItsSchema) {
    const JsonSchema schema("measurement-1.json");
    const auto document = measurement_document(sample::gpu_context(),
                                               {sample::measurement(), sample::above_roof(), sample::wrong()},
                                               {{"verify", 0.1}}, {"a note"});
    EXPECT_EQ(schema.faults(parsed(document)), "");
}

// The test of the test: each damage must be seen.
TEST(Json, SchemaCheckerSeesFaults) {
    const JsonSchema schema("plan-1.json");
    const auto good = parsed(plan_document(sample::context(), gemm_plan_set(sample::plans())));
    auto damaged = [&](const char* pointer, nlohmann::json value) {
        auto document = good;
        document[nlohmann::json::json_pointer(pointer)] = std::move(value);
        return schema.faults(document);
    };
    EXPECT_NE(damaged("/schema", "rooftile/plan/2"), "");
    EXPECT_NE(damaged("/plans/0/rank", 1.5), "");
    EXPECT_NE(damaged("/plans/0/config/order", "spiral"), "");
    EXPECT_NE(damaged("/plans/0/config/tile_m", 0), "");
    EXPECT_NE(damaged("/plans/0/config/evict_first", "ba"), "");
    EXPECT_NE(damaged("/plans/0/resources/setmaxnreg", {{"producer", 40}}), "");
    EXPECT_NE(damaged("/plans/0/surprise", true), "");
    auto without = good;
    without.erase("rejected");
    EXPECT_NE(schema.faults(without), "");
}

TEST(Json, ConfigSaysHowItStoresLaunchesAndCaches) {
    GemmConfig config = sample::plans().plans[0].config;
    config.overlapped_epilogue = config.swap_ab = true;
    config.programmatic_launch = false;
    config.evict_first = {.b = true, .c = true};
    const auto json = parsed(config_json(config));
    EXPECT_EQ(json.at("overlapped_epilogue"), true);
    EXPECT_EQ(json.at("swap_ab"), true);
    EXPECT_EQ(json.at("programmatic_launch"), false);
    EXPECT_EQ(json.at("evict_first"), "bc");
    EXPECT_EQ(parsed(config_json({})).at("evict_first"), "");
}

TEST(Json, ADocumentOfBeforeThoseKeysFollowsItsSchema) {
    for (const char* file : {"plan-1.json", "measurement-1.json"}) {
        const bool plan = file[0] == 'p';
        auto document = plan ? parsed(plan_document(sample::context(), gemm_plan_set(sample::plans())))
                             : parsed(measurement_document(sample::gpu_context(), {sample::measurement()}));
        auto& config = document.at(plan ? "plans" : "rows").at(0).at("config");
        for (const char* key :
             {"swap_ab", "overlapped_epilogue", "epilogue_tile_n", "programmatic_launch", "evict_first"})
            EXPECT_EQ(config.erase(key), 1u) << file << " " << key;
        EXPECT_EQ(JsonSchema(file).faults(document), "");
    }
}

TEST(Json, UnknownValuesAreNullAndNamed) {
    const auto plan = parsed(plan_document(sample::context(), gemm_plan_set(sample::plans()))).at("plans").at(1);
    EXPECT_TRUE(plan.at("prediction").at("bound").is_null());
    EXPECT_EQ(plan.at("unknown"), nlohmann::json({"prediction.bound", "prediction.interval_us", "derivation.slack_cycles"}));
    EXPECT_EQ(plan.at("unknown_inputs"), nlohmann::json({"shared.bandwidth"}));
}

TEST(Json, UnusedSetmaxnregIsNullAndNotUnknown) {
    Plans plans = sample::plans();
    plans.plans[0].resources.producer_registers.reset();
    plans.plans[0].resources.consumer_registers.reset();
    const auto plan = parsed(plan_document(sample::context(), gemm_plan_set(plans))).at("plans").at(0);
    EXPECT_TRUE(plan.at("resources").at("setmaxnreg").is_null());
    EXPECT_EQ(plan.at("unknown"), nlohmann::json({"prediction.interval_us", "derivation.slack_cycles"}));
}

TEST(Json, NumbersAreWholeWhereTheyAreAndNeverNotFinite) {
    EXPECT_EQ(json_number(4096.0).dump(), "4096");
    EXPECT_EQ(json_number(-3.0).dump(), "-3");
    EXPECT_EQ(json_number(0.25).dump(), "0.25");
    EXPECT_EQ(json_number(std::nan("")).dump(), "null");
    EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(json_number(std::nullopt).dump(), "null");
    // 459.18 cycles in the derivation: cycles are whole at the edge.
    const auto step =
        parsed(plan_document(sample::context(), gemm_plan_set(sample::plans()))).at("plans").at(0).at("derivation").at(1);
    EXPECT_TRUE(step.at("value").is_number_integer());
    EXPECT_EQ(step.at("value"), 459);
    EXPECT_EQ(step.at("inputs").at(1).at("value"), 47.41);
}

TEST(Json, RejectedReasonsSumToTheCount) {
    const auto rejected = parsed(plan_document(sample::context(), gemm_plan_set(sample::plans()))).at("rejected");
    int sum = 0;
    for (const auto& reason : rejected.at("reasons")) sum += reason.get<int>();
    EXPECT_EQ(sum, 136);  // 10 + 20 + 5 + 1 + 100
    EXPECT_EQ(rejected.at("count"), 136);
}

TEST(Json, InfeasibleKeepsThePlaceOfThePlans) {
    const auto document = parsed(plan_document(sample::context(), gemm_plan_set(sample::infeasible())));
    EXPECT_TRUE(document.at("plans").empty());
    EXPECT_EQ(document.at("infeasible").at("reason"), "shared");
    EXPECT_EQ(document.at("infeasible").at("needed"), 245760);
    EXPECT_EQ(document.at("problem").at("m"), 128);
    EXPECT_EQ(document.at("unknown"), nlohmann::json({"shared.bandwidth"}));
    EXPECT_EQ(document.at("unchecked_constraints"), nlohmann::json({"waves"}));
    EXPECT_EQ(document.at("notes"), nlohmann::json({"tcgen05 is not modelled yet"}));
}

TEST(Json, WhatIsNoResultHasNoFigures) {
    const auto rows =
        parsed(measurement_document(sample::gpu_context(),
                                    {sample::measurement(), sample::above_roof(), sample::wrong()}))
            .at("rows");
    EXPECT_EQ(rows.at(0).at("time_us"), 650);
    EXPECT_TRUE(rows.at(0).at("invalid").is_null());
    for (int i : {1, 2})
        for (const char* figure :
             {"time_us", "time_us_low", "time_us_high", "tflops", "gbytes_per_s", "roof_fraction"})
            EXPECT_TRUE(rows.at(i).at(figure).is_null()) << i << " " << figure;
    EXPECT_NE(rows.at(1).at("invalid").get<std::string>().find("above the roof"), std::string::npos);
    EXPECT_NE(rows.at(2).at("invalid").get<std::string>().find("C[3,5]"), std::string::npos);
}

TEST(Json, GpuContextStandsOnlyWhereAGpuRan) {
    EXPECT_FALSE(parsed(context_json(sample::context())).contains("gpu"));
    EXPECT_TRUE(parsed(context_json(sample::context())).at("kernel_hash").is_null());
    const auto gpu = parsed(context_json(sample::gpu_context()));
    for (const char* key : {"gpu", "driver", "nvrtc", "date", "seed"}) EXPECT_TRUE(gpu.contains(key)) << key;
}

TEST(Json, LinesStandAlone) {
    const Json document = plan_document(sample::context(), gemm_plan_set(sample::plans()));
    EXPECT_FALSE(context_line(document).contains("plans"));
    EXPECT_TRUE(context_line(document).contains("rejected"));
    const auto rows = row_lines(document);
    ASSERT_EQ(rows.size(), 2u);
    for (const Json& row : rows) {
        EXPECT_EQ(row.at("machine").at("id"), "h100-sxm");
        EXPECT_EQ(row.at("problem").at("m"), 4096);
        EXPECT_EQ(json_text(row, -1).find('\n'), json_text(row, -1).size() - 1);
    }
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
    DocumentContext context = sample::context();
    context.command = "rooftile plan \xff\xfe";
    const auto document = parsed(plan_document(context, gemm_plan_set(sample::plans())));
    EXPECT_EQ(document.at("context").at("command"), "rooftile plan \xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace rooftile
