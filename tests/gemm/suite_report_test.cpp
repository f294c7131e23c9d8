// Hand-made rows in, tables and missed bars out.
#include "rooftile/report/measurement.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/suite_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/json.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct Made {
    std::int64_t m, n, k;
    std::vector<double> ratios;  ///< cuBLASLt over each plan, best ranked first
    std::vector<SuiteLayer> layers = {{"model", "layer"}};
};

/// cuBLASLt takes 100 us; the prediction is 10 % above rank 1's time.
std::vector<Measurement> rows_of(const Made& made) {
    std::vector<Measurement> rows;
    for (std::size_t i = 0; i < made.ratios.size(); ++i) {
        Measurement& row = rows.emplace_back(sample::measurement());
        GemmPlan plan = sample::plan(int(i) + 1);
        plan.problem = gemm_problem(made.m, made.n, made.k);
        row.plan = any_plan(std::move(plan));
        row.plans = int(made.ratios.size());
        row.layers = made.layers;
        row.time_us = 100 / made.ratios[i];
        row.plan.time_us = 1.1 * *row.time_us;
        row.baselines =
            sample::baselines(101, 100, 1, {made.ratios[i], made.ratios[i] - 0.01, made.ratios[i] + 0.01, 0.98, 7});
        if (i > 0) row.rank1_ratio = made.ratios[i] / made.ratios[0];
    }
    return rows;
}

Json first_line() {
    DocumentContext context = sample::gpu_context();
    context.machine_id = "h200-sxm";
    Json line = context_line(measurement_document(context, {}));
    line["context"]["program_hash"] = "abc";
    line["suite"] = "made";
    return line;
}

std::string text_of(const std::vector<Measurement>& rows) {
    std::string text;
    for (const Json& line : measurement_lines(sample::gpu_context(), rows, {"a note"}))
        text += json_text(line, -1);
    return text;
}

std::string record_of(const std::vector<Made>& all) {
    std::string text = json_text(first_line(), -1);
    for (const Made& made : all) text += text_of(rows_of(made));
    return text;
}

SuiteReport report_of(const std::vector<Made>& all) {
    return suite_report(read_suite_record(record_of(all), "x.jsonl"));
}

/// Everything at or above its bar.
std::vector<Made> good() {
    return {{4096, 4096, 4096, {1.01, 1.0}, {{"a", "o"}, {"square", "square"}}},
            {8192, 8192, 8192, {1.0}, {{"square", "square"}}},
            {512, 4096, 4096, {0.98, 1.0}, {{"a", "o"}}},
            {16, 4096, 4096, {0.5}, {{"a", "o"}}}};
}

// Launched plainly: 0.8 and 0.45 x cuBLASLt's 100 us, sqrt(0.8 x 0.45) = 0.6; as planned sqrt(1.25 x 0.5) = 0.791. Plain launches
// of 125 and 222.2 us are predicted 10 % too short.
TEST(SuiteReport, FewRowsAreToldInBothWaysOfLaunching) {
    std::string text = json_text(first_line(), -1);
    for (const auto& [m, planned, plain] : {std::tuple{16, 1.25, 0.8}, {64, 0.5, 0.45}, {512, 1.0, 0.0}}) {
        std::vector<Measurement> rows = rows_of({m, 4096, 4096, {planned}});
        if (plain > 0)
            rows[0].variants = {{.key = "pdl_off",
                                 .name = "without programmatic launch",
                                 .predicted_us = 0.9 * 100 / plain,
                                 .time_us = 100 / plain,
                                 .ratio = MedianInterval{plain, plain, plain, 0.98, 7}}};
        text += text_of(rows);
    }
    const SuiteReport report = suite_report(read_suite_record(text, "x.jsonl"));
    ASSERT_EQ(report.launches.size(), 1u);
    EXPECT_EQ(report.launches[0].problems, 2);
    EXPECT_NEAR(*report.launches[0].planned, 0.7906, 1e-4);
    EXPECT_NEAR(*report.launches[0].other, 0.6, 1e-12);
    EXPECT_NEAR(report.launches[0].other_error.value().mean, 0.1, 1e-12);
    const char* line = "M < 128, 2 problems launched in two ways in the same rounds: ratio 0.791 as planned, 0.600 without";
    std::string flowed = suite_text(report, {});
    std::replace(flowed.begin(), flowed.end(), '\n', ' ');
    EXPECT_THAT(flowed, HasSubstr(line));
    EXPECT_THAT(suite_text(report_of(good()), {}), testing::Not(HasSubstr("two ways")));
}

TEST(SuiteRecord, ReadsWhatWasWritten) {
    const SuiteRecord record = read_suite_record(record_of(good()), "x.jsonl");
    EXPECT_EQ(record.suite, "made");
    EXPECT_EQ(record.machine_id, "h200-sxm");
    EXPECT_EQ(record.program_hash, "abc");
    EXPECT_EQ(record.seed, 7u);
    ASSERT_EQ(record.shapes.size(), 4u);
    EXPECT_EQ(record.shapes[0].rows.size(), 2u);
    EXPECT_EQ(record.shapes[0].first().problem, problem_key({&gemm_operation(), Own::of(gemm_problem(4096, 4096, 4096))}));
    EXPECT_EQ(record.shapes[0].first().layers.size(), 2u);
    EXPECT_EQ(record.lines.size(), 5u);
    std::string again;
    for (const std::string& line : record.lines) again += line;
    EXPECT_EQ(again, record_of(good()));
}

TEST(SuiteRecord, ReadsRowsOfBeforeTheConfigSaidHowItStoresAndCaches) {
    std::string text = json_text(first_line(), -1);
    for (Json line : measurement_lines(sample::gpu_context(), rows_of(good()[0]), {})) {
        for (const char* key :
             {"swap_ab", "overlapped_epilogue", "epilogue_tile_n", "programmatic_launch", "evict_first"})
            ASSERT_EQ(line.at("config").erase(key), 1u) << key;
        text += json_text(line, -1);
    }
    const SuiteRecord old = read_suite_record(text, "x.jsonl");
    ASSERT_EQ(old.shapes.size(), 1u);
    EXPECT_EQ(old.shapes[0].rows.size(), 2u);
    EXPECT_EQ(gemm_row(old.shapes[0].first()).label,
              gemm_row(read_suite_record(record_of(good()), "x.jsonl").shapes[0].first()).label);
}

TEST(SuiteRecord, WhatAKilledRunLeftIsNotThere) {
    const std::string whole = record_of(good());
    const std::size_t rows_of_first =
        whole.find('\n', whole.find('\n') + 1) + 1;  // the context and one row of two
    for (const std::size_t cut : {rows_of_first, rows_of_first + 100, whole.find('\n') + 1}) {
        const SuiteRecord record = read_suite_record(whole.substr(0, cut), "x.jsonl");
        EXPECT_TRUE(record.shapes.empty()) << cut;
        EXPECT_EQ(record.lines.size(), 1u) << cut;
    }
    EXPECT_EQ(read_suite_record(whole.substr(0, whole.size() - 1), "x.jsonl").shapes.size(), 3u);
}

TEST(SuiteRecord, RefusesWhatIsNone) {
    const auto refusal = [](const std::string& text) {
        try {
            read_suite_record(text, "x.jsonl");
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    EXPECT_THAT(refusal(""), HasSubstr("x.jsonl: no context line"));
    EXPECT_THAT(refusal("{\"schema\":"), HasSubstr("no context line"));
    EXPECT_THAT(refusal("no JSON\n"), HasSubstr("x.jsonl:1:"));
    EXPECT_THAT(refusal("{\"schema\":\"rooftile/plan/1\"}\n"), HasSubstr("x.jsonl:1:"));
    EXPECT_THAT(refusal(json_text(first_line(), -1) + "{}\n"), HasSubstr("x.jsonl:2:"));
    EXPECT_THAT(refusal(json_text(first_line(), -1) + "{\"problem\":{\"m\":\"x\"}}\n"),
                HasSubstr("x.jsonl:2:"));
}

TEST(SuiteRecord, RefusesNumbersThatNoRunWrites) {
    const auto refusal = [](const char* pointer, const Json& value) {
        Json line = measurement_lines(sample::gpu_context(), rows_of(good()[1]), {}).at(0);
        line.at(Json::json_pointer(pointer)) = value;
        try {
            suite_report(read_suite_record(json_text(first_line(), -1) + json_text(line, -1), "x.jsonl"));
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    EXPECT_EQ(refusal("/time_us", 100.0), "");
    EXPECT_THAT(refusal("/time_us", 0), HasSubstr("time_us is 0; it must be above 0"));
    EXPECT_THAT(refusal("/predicted_time_us", -1), HasSubstr("predicted_time_us is -1"));
    EXPECT_THAT(refusal("/baselines/cublaslt_ratio", 0), HasSubstr("cublaslt_ratio is 0"));
    EXPECT_THAT(refusal("/problem/m", -5), HasSubstr("m is -5; it must be a whole number from 1 on"));
    EXPECT_THAT(refusal("/problem/k", 1e300), HasSubstr("k is 1e+300"));
    EXPECT_THAT(refusal("/problem/n", 1.5), HasSubstr("n is 1.5"));
}

TEST(SuiteRows, FollowTheSchema) {
    const JsonSchema schema("measurement-1.json");
    Json document = first_line();
    document["rows"] = Json::array();
    for (Json line : measurement_lines(sample::gpu_context(), rows_of(good()[0]), {"a note"})) {
        line.erase("machine");
        document["rows"].push_back(line);
    }
    Json infeasible =
        infeasible_line(sample::gpu_context(), sample::refused(), {{"a", "b"}}, Mode::sustained);
    infeasible.erase("machine");
    document["rows"].push_back(infeasible);
    EXPECT_EQ(schema.faults(nlohmann::json::parse(json_text(document))), "");
}

// a at M >= 2048: 1.01 alone. All at M >= 2048: sqrt(1.01 x 1.00) = 1.00499.
TEST(SuiteReport, MeansByModelAndByM) {
    const SuiteReport r = report_of(good());
    ASSERT_EQ(r.models.size(), 3u);
    EXPECT_EQ(r.models[0].model, "a");
    EXPECT_EQ(r.models[1].model, "square");
    EXPECT_EQ(r.models[2].model, "all");
    const auto large = std::size_t(MClass::large), middle = std::size_t(MClass::middle),
               small = std::size_t(MClass::small);
    EXPECT_NEAR(r.models[0].classes[large].ratio.geomean, 1.01, 1e-12);
    EXPECT_EQ(r.models[2].classes[large].ratio.count, 2);  // the shared problem once
    EXPECT_NEAR(r.models[2].classes[large].ratio.geomean, 1.004988, 1e-6);
    EXPECT_NEAR(r.models[2].classes[large].ratio.least, 1.0, 1e-12);
    EXPECT_EQ(r.models[2].classes[large].losses, 0);
    EXPECT_EQ(r.models[2].classes[middle].losses, 1);
    // 16 x 4096 x 2 + 4096 x 4096 x 2 + 16 x 4096 x 2 = 33816576 B in 200 us: 169.1 GB/s.
    EXPECT_EQ(r.dram_key, "dram.sustained_copy");
    const double copy = machine_by_id("h200-sxm").find(r.dram_key)->value;
    EXPECT_NEAR(r.models[2].classes[small].dram_share.geomean, 169.08288e9 / copy, 1e-6);
    EXPECT_NEAR(r.prediction.geomean, 1.1, 1e-12);
    EXPECT_NEAR(r.prediction_error.value().mean, 0.1, 1e-12);
}

// 1.02 / 0.98 = 1.041 is more than 3 % ahead; 1.00 / 0.98 = 1.0204 is not.
TEST(SuiteReport, RankOneBesideTheBestOfItsOwn) {
    EXPECT_EQ(report_of({{512, 64, 64, {0.98, 1.00}}}).ranked_right, 1);
    const SuiteReport worse = report_of({{512, 64, 64, {0.98, 0.9, 1.02}}, {512, 64, 128, {1.0, 0.5}}});
    EXPECT_EQ(worse.ranked, 2);
    EXPECT_EQ(worse.ranked_right, 1);
    EXPECT_NEAR(*worse.shapes[0].best_of_own, 1.02 / 0.98, 1e-12);
    EXPECT_EQ(*worse.shapes[1].best_of_own, 1);
}

/// Of `made`, with a paired re-measurement of rank `rank`.
std::string with_confirmation(const Made& made, int rank, double ratio) {
    std::vector<Measurement> rows = rows_of(made);
    Measurement& fastest = rows[std::size_t(rank - 1)];
    fastest.confirmation = Confirmation{{ratio, ratio - 0.01, ratio + 0.01, 0.96, 7}, *fastest.rank1_ratio};
    fastest.rank1_ratio = ratio;
    return text_of(rows);
}

// By the rounds plan 3 is 1.041 times as fast and plan 2 1.031; the paired re-measurement says 1.012 of plan 3 and nothing of plan 2.
TEST(SuiteReport, TheConfirmationAloneSaysHowFarTheFastestIsAhead) {
    const Made made{512, 64, 64, {0.98, 1.01, 1.02}};
    const SuiteReport with = suite_report(
        read_suite_record(json_text(first_line(), -1) + with_confirmation(made, 3, 1.012), "x.jsonl"));
    EXPECT_NEAR(*with.shapes[0].best_of_own, 1.012, 1e-12);
    EXPECT_EQ(with.ranked_right, 1);
    EXPECT_EQ(with.confirmed, 1);
    EXPECT_THAT(suite_markdown(with), HasSubstr("1 by a paired re-measurement of the two"));
    EXPECT_EQ(report_of({made}).ranked_right, 0);
    EXPECT_EQ(report_of({made}).confirmed, 0);
    EXPECT_THAT(suite_markdown(report_of({made})), HasSubstr("1 by the rounds that found the fastest."));
    // Slower in the paired re-measurement: rank 1 was the best after all.
    EXPECT_EQ(
        *suite_report(read_suite_record(json_text(first_line(), -1) + with_confirmation(made, 3, 0.99), "x"))
             .shapes[0]
             .best_of_own,
        1);
}

TEST(SuiteReport, SaysWhereMediansHaveToDo) {
    std::vector<Measurement> rows = rows_of({512, 64, 64, {0.98, 1.02}});
    rows[1].rank1_ratio.reset();
    rows[0].baselines[1].ratio.reset();
    const SuiteReport r = suite_report(read_suite_record(json_text(first_line(), -1) + text_of(rows), "x"));
    EXPECT_NEAR(*r.shapes[0].best_of_own, 1.02 / 0.98, 1e-12);
    EXPECT_EQ(r.by_medians, 1);
    const std::string text = suite_markdown(r);
    EXPECT_THAT(text, HasSubstr("1 by medians over different rounds."));
    EXPECT_THAT(text, HasSubstr("1 of the ratios to cuBLASLt are of medians"));
}

TEST(SuiteRows, WithAConfirmationFollowTheSchema) {
    Json document = first_line();
    document["rows"] = Json::array();
    std::istringstream text(with_confirmation(good()[0], 2, 1.02));
    for (std::string line; std::getline(text, line);) {
        document["rows"].push_back(Json::parse(line));
        document["rows"].back().erase("machine");
    }
    EXPECT_EQ(document["rows"][1]["confirmation"]["samples"], 7);
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(nlohmann::json::parse(json_text(document))), "");
}

TEST(SuiteReport, TheWorstComeFirstAndSmallMAreLeftOut) {
    std::vector<Made> all;
    for (int i = 0; i < 12; ++i) all.push_back({128, 64, 64 * (i + 1), {1.0 - 0.01 * i}});
    all.push_back({64, 64, 64, {0.1}});
    const SuiteReport r = report_of(all);
    ASSERT_EQ(r.worst.size(), 10u);
    EXPECT_EQ(r.worst.front(), 11u);
    EXPECT_EQ(r.worst.back(), 2u);
}

TEST(SuiteReport, WhatHasNoResultIsNamed) {
    std::vector<Measurement> rows = rows_of(good()[0]);
    rows[0].verified = sample::wrong().verified;
    const std::string text =
        json_text(first_line(), -1) + text_of(rows)
        + json_text(
            infeasible_line(sample::gpu_context(), sample::refused(), {{"a", "b"}}, Mode::sustained), -1);
    const SuiteReport r = suite_report(read_suite_record(text, "x.jsonl"));
    ASSERT_EQ(r.shapes.size(), 2u);
    EXPECT_THAT(r.shapes[0].why_none, HasSubstr("C[3,5]"));
    EXPECT_THAT(r.shapes[1].why_none, HasSubstr("no plan fits: 5 x 49152"));
    EXPECT_EQ(r.ranked, 0);
    EXPECT_THAT(suite_text(r, {}), HasSubstr("2 problems have no result"));
    EXPECT_THAT(missed_bars(r), Contains(HasSubstr("128x256x4096: no result")));
}

TEST(MissedBars, NoneWhereAllHold) { EXPECT_THAT(missed_bars(report_of(good())), ElementsAre()); }

TEST(MissedBars, EachIsSeen) {
    const auto missed = [](std::size_t which, std::vector<double> ratios) {
        auto all = good();
        all[which].ratios = std::move(ratios);
        return missed_bars(report_of(all));
    };
    EXPECT_THAT(missed(0, {0.999}), Contains(HasSubstr("4096x4096x4096: 0.999 x cuBLASLt; wanted 1.00")));
    EXPECT_THAT(missed(1, {0.94}),
                testing::AllOf(Contains(HasSubstr("8192x8192x8192: 0.940 x cuBLASLt; wanted 1.00")),
                               Contains(HasSubstr("8192x8192x8192: 0.940 x cuBLASLt; wanted 0.95")),
                               Contains(HasSubstr("M >= 2048: geometric mean 0.974"))));
    EXPECT_THAT(missed(2, {0.96}), ElementsAre(HasSubstr("128 <= M < 2048: geometric mean 0.960")));
    EXPECT_THAT(missed(2, {0.97, 1.1}), ElementsAre(HasSubstr("on 1 of 2 problems; wanted 90 %")));
    EXPECT_THAT(missed(3, {0.02}), ElementsAre());  // reported, no bar
    auto without = good();
    without.erase(without.begin());
    EXPECT_THAT(missed_bars(report_of(without)), Contains(HasSubstr("4096x4096x4096: no ratio")));
}

TEST(MissedBars, ProblemsOfTheSuiteThatAreAbsent) {
    Suite suite;
    for (const Made& made : good())
        suite.problems.push_back(
            {{&gemm_operation(), Own::of(gemm_problem(made.m, made.n, made.k))}, made.layers, 0});
    const SuiteRecord record = read_suite_record(record_of(good()), "x.jsonl");
    EXPECT_THAT(missed_bars(suite_report(record, &suite)), ElementsAre());
    suite.problems.push_back({{&gemm_operation(), Own::of(gemm_problem(1, 2, 3))}, {{"a", "b"}}, 0});
    EXPECT_THAT(missed_bars(suite_report(record, &suite)),
                ElementsAre("1 problem of the suite not measured, the first a b 1x2x3"));
}

TEST(SuiteReport, Golden) {
    expect_golden("suite.txt", suite_text(report_of(good()), {}));
    expect_golden("suite.md", suite_markdown(report_of(good())));
}

TEST(SuiteReport, RowsCannotSteerTheReader) {
    const SuiteReport r = report_of({{512, 64, 64, {1.0}, {{"evil \x1b[2J|<b>", "x\ny"}}}});
    EXPECT_EQ(suite_text(r, {}).find('\x1b'), std::string::npos);
    const std::string markdown = suite_markdown(r);
    EXPECT_EQ(markdown.find('\x1b'), std::string::npos);
    EXPECT_EQ(markdown.find(" <b>"), std::string::npos);
    EXPECT_THAT(markdown, HasSubstr("\\|\\<b\\>"));
}

}  // namespace
}  // namespace rooftile
