#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/gemm/ladder_json.hpp"
#include "rooftile/gemm/ladder_text.hpp"
#include "rooftile/report/csv.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

LadderRow row(Rung rung, double predicted_us, double measured_us) {
    LadderRow r;
    r.rung = rung;
    r.name = label_of(rung);
    r.adds = adds_of(rung);
    r.prediction = {.time_us = predicted_us,
                    .tflops = 100,
                    .clock_mhz = 1980,
                    .bound = Bound::shared,
                    .reason = "shared memory's port is busy 1024 cycles a k-step, the matrix units 814",
                    .unknown = {}};
    GemmPlan plan;
    plan.problem = gemm_problem(4096, 4096, 4096);
    plan.resources.threads = ladder_config(rung).threads();
    r.measured = gemm_row(std::move(plan));
    r.measured.time_us = measured_us;
    r.measured.time_us_low = measured_us - 1;
    r.measured.time_us_high = measured_us + 1;
    r.measured.samples = 7;
    r.measured.tflops = 137438.953472 / measured_us;
    r.measured.roof_fraction = 0.5;
    r.measured.verified = {.exact = true, .random = true, .special = true, .max_error = 0.5, .bound = 1};
    r.measured.sm_clock_mhz = 1900;
    r.measured.registers = 128;
    r.measured.compile_seconds = 0.2;
    return r;
}

/// Three rungs, one of which could not be built, and the planned kernel.
LadderRun sample_run() {
    LadderRun run;
    run.problem = gemm_problem(4096, 4096, 4096);
    run.rows = {row(Rung::naive, 1000, 2000), row(Rung::shared, 500, 400), row(Rung::pipelined, 200, 0),
                row(Rung::full, 200, 250)};
    run.rows[2].obstacle = "N is 67; C is stored by TMA in 16-byte pieces: a multiple of 8";
    run.rows[2].prediction = {};
    run.rows[2].prediction.reason = run.rows[2].obstacle;
    run.rows[2].measured.verified = {};
    LadderRow planned = row(Rung::full, 190, 240);
    planned.rung.reset();
    planned.name = "planned";
    planned.adds = "the planner's own";
    planned.measured.plan = any_plan(sample::plan(1));
    run.rows.push_back(planned);
    run.baselines = sample::baselines(220, 200, 0, {});
    run.notes = {"a note"};
    return run;
}

TEST(LadderReport, RatiosOfARowAndTheOneBefore) {
    const LadderRun run = sample_run();
    EXPECT_DOUBLE_EQ(*ratios_of(run, 0).measured_over_predicted, 2);
    EXPECT_FALSE(ratios_of(run, 0).speedup);
    EXPECT_DOUBLE_EQ(*ratios_of(run, 1).speedup, 5);
    EXPECT_DOUBLE_EQ(*ratios_of(run, 1).cublaslt_share, 0.5);
    EXPECT_FALSE(ratios_of(run, 2).measured_over_predicted);
    EXPECT_FALSE(ratios_of(run, 3).speedup) << "the rung before has no result";
    EXPECT_DOUBLE_EQ(*ratios_of(run, 4).speedup, 250.0 / 240);
}

TEST(LadderReport, TheDocumentFollowsItsSchema) {
    const JsonSchema schema("ladder-1.json");
    const auto document =
        nlohmann::json::parse(ladder_document(sample::context(), sample_run(), true).dump());
    EXPECT_EQ(schema.faults(document), "");
    EXPECT_EQ(document.at("rows").size(), 5u);
    EXPECT_TRUE(document.at("rows")[2].at("time_us").is_null());
    EXPECT_EQ(document.at("rows")[2].at("invalid"), sample_run().rows[2].obstacle);
    EXPECT_TRUE(document.at("rows")[4].at("rung").is_null());
    EXPECT_EQ(document.at("rows")[0].at("config").at("kernel"), "ladder_naive");
    auto damaged = document;
    damaged["rows"][0].erase("predicted");
    EXPECT_NE(schema.faults(damaged), "");
}

TEST(LadderReport, AWrongResultHasNoFigures) {
    LadderRun run = sample_run();
    run.rows[1].measured.verified.random = false;
    run.rows[1].measured.verified.failure = "C[0, 1] is 2, expected 1";
    EXPECT_FALSE(run.verified());
    const Json document = ladder_document(sample::context(), run);
    EXPECT_TRUE(document.at("rows")[1].at("time_us").is_null());
    EXPECT_TRUE(document.at("rows")[1].at("measured_over_predicted").is_null());
    EXPECT_FALSE(document.at("rows")[1].at("invalid").is_null());
    const std::string text = ladder_text(sample::context(), run, {});
    EXPECT_NE(text.find("no result"), std::string::npos);
    EXPECT_NE(text.find("FAIL"), std::string::npos);
}

TEST(LadderReport, CsvHasOneLineARung) {
    const std::string csv = csv_text(ladder_document(sample::context(), sample_run()));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
    EXPECT_EQ(csv.rfind("machine,op,m,n,k,", 0), 0u) << csv;
    EXPECT_NE(csv.find(",predicted_time_us,"), std::string::npos);
    EXPECT_NE(csv.find(",2,shared,shared tiles,ladder_shared,128,"), std::string::npos) << csv;
}

TEST(LadderReport, TheTableInMarkdownComesFromTheDocument) {
    const Json document = ladder_document(sample::context(), sample_run());
    const std::string table = ladder_markdown(document);
    EXPECT_NE(table.find("\n| 2 shared | shared tiles | 500.0 us | 400.0 us | 0.800 | 344 | 5 | 50.0 % |\n"),
              std::string::npos)
        << table;
    EXPECT_NE(table.find("| 5 pipelined | roles, ring of 4 | – | – | – | – | – | – |\n"), std::string::npos);
    EXPECT_NE(table.find("| cuBLASLt | best of 8 | | 200.0 us | | 687 | | |\n"), std::string::npos);
    EXPECT_THROW(ladder_markdown(Json::array()), RequestError);
    EXPECT_THROW(ladder_markdown({{"schema", "rooftile/plan/1"}}), RequestError);
    Json damaged = document;
    damaged["rows"][0].erase("predicted");
    EXPECT_THROW(ladder_markdown(damaged), RequestError);
}

TEST(LadderReport, TheTable) {
    expect_golden("ladder.txt", ladder_text(sample::context(), sample_run(), {.width = 100}));
}

}  // namespace
}  // namespace rooftile
