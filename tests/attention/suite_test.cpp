// The suite that is shipped, what a report says of a run, and how many numbers of the model were fitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "rooftile/attention/draw.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/attention/suite_report.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/terminal.hpp"
#include "tests/calibrated_keys.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

// 3 dims, heads of their own and shared, 2 masks, 5 lengths; each of 16,384 tokens and 2,048 elements a token.
TEST(AttentionSuite, IsTheGridThatTheDocumentSays) {
    const Suite suite = read_suite(attention_operation(), ROOFTILE_SOURCE_DIR "/bench/suites/attention.toml");
    EXPECT_EQ(suite.problems.size(), 3u * 2 * 2 * 5);
    for (const SuiteProblem& problem : suite.problems) {
        const auto& p = problem.problem.own.as<AttentionProblem>();
        EXPECT_EQ(p.batch * p.queries, 16384);
        EXPECT_EQ(p.heads * p.dim, 2048);
    }
}

// Of few queries each, whose blocks may be shared out.
TEST(AttentionSuite, CachesAreOfFewQueries) {
    const Suite suite = read_suite(attention_operation(), ROOFTILE_SOURCE_DIR "/bench/suites/caches.toml");
    EXPECT_EQ(suite.problems.size(), 19u);
    for (const SuiteProblem& problem : suite.problems)
        EXPECT_TRUE(few_queries(problem.problem.own.as<AttentionProblem>())) << problem.layers.front().layer;
}

SuiteRow row_of(const std::string& name, int rank, std::optional<double> time_us, double predicted_us, double tflops) {
    SuiteRow row;
    row.line = "{\"tflops\": " + std::to_string(tflops) + "}";
    row.problem = name, row.op = "attention", row.layers = {{"s", name}}, row.rank = rank, row.plans = 2;
    row.time_us = time_us, row.predicted_us = predicted_us;
    if (!time_us) row.invalid = "wrong: O";
    if (rank > 1 && time_us) row.rank1_ratio = 1.25;
    return row;
}

TEST(AttentionSuite, AReportSaysErrorsAndWhatIsMissing) {
    SuiteRecord record;
    record.suite = "s", record.machine_name = "a GPU", record.date = "2026-11-25T00:00";
    // 10 % too long and 30 % too short: 20 % in the mean. Plan 2 of the first is 1.25 times as fast as plan 1.
    record.shapes = {{{row_of("one", 1, 100, 110, 500), row_of("one", 2, 80, 120, 625)}},
                     {{row_of("two", 1, 200, 140, 300), row_of("two", 2, std::nullopt, 150, 0)}},
                     {{row_of("three", 1, std::nullopt, 10, 0)}}};
    const SuiteReporter reporter = attention_suite_reporter(std::move(record), nullptr);
    const std::string text = reporter.text({.color = false, .utf8 = false, .width = 100});
    EXPECT_THAT(text, HasSubstr("Predictions are off by -10.0 % mean, 20.0 % absolute."));
    EXPECT_THAT(text, HasSubstr("within 3 % of the fastest of its own on 1 of 2"));
    EXPECT_THAT(text, HasSubstr("wrong: O"));
    EXPECT_THAT(reporter.markdown(), HasSubstr("| s one |"));
    ASSERT_EQ(reporter.missed.size(), 1u);
    EXPECT_THAT(reporter.missed[0], HasSubstr("three: no result"));
}

// How many numbers of the time model were settled by runs of our own kernels: at most ten.
TEST(AttentionCalibratedNumbers, AreAtMostTen) {
    Random random(20261125);
    std::vector<AttentionProblem> drawn;
    for (std::size_t i = test_count(10, 40); i > 0; --i) drawn.push_back(drawn_attention(random));
    for (const char* gpu : {"h200-sxm", "h100-sxm"}) {
        // What comes of one: of every plan its time.
        const auto keys = calibrated_keys(machine_by_id(gpu), drawn.size(), [&](const Machine& m, std::size_t i) {
            std::ostringstream text;
            text.precision(17);
            const auto result = derive(std::make_shared<const Machine>(m), drawn[i], {.top = 1000});
            for (const AttentionPlan& plan : std::get<AttentionPlans>(result).plans) text << plan.prediction.time_us.value_or(-1) << '\n';
            return text.str();
        });
        EXPECT_LE(keys.size(), 10u) << testing::PrintToString(keys);
        EXPECT_TRUE(keys.contains("softmax.latency")) << "the count sees them: this is one, of " << testing::PrintToString(keys);
    }
}

}  // namespace
}  // namespace rooftile
