#include "rooftile/tune/tune.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

const TunePlace a_place = {.gpu = "NVIDIA H200", .power_limit_w = {}, .driver = "13000", .program = "this"};

PlanSet some_plans(int top = tune_kept) {
    const Operation& operation = *operations().front();
    const Given given = example_of(operation);
    return operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), operation.problem(given),
                            operation.request(given, {.top = top, .buildable_only = true}));
}

/// Rows of measured plans.
std::vector<Measurement> rows_of(const PlanSet& plans, std::initializer_list<double> times) {
    std::vector<Measurement> rows;
    for (const double us : times) {
        Measurement& row = rows.emplace_back();
        row.plan = plans.plans.at(rows.size() - 1);
        row.time_us = us;
    }
    return rows;
}

Confirmation confirmed(double low, double median, double high) { return {.ratio = {median, low, high, 0.97, 6}, .first_ratio = 1.2}; }

TEST(Tune, AnotherPlanIsChosenOnlyBeyondTheNoise) {
    const PlanSet plans = some_plans();
    std::vector<Measurement> rows = rows_of(plans, {10, 9, 8.5});
    auto choice = choice_of(a_place, rows);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->rank, 1) << "nothing was confirmed";
    rows[2].confirmation = confirmed(0.99, 1.02, 1.05);
    EXPECT_EQ(choice_of(a_place, rows)->rank, 1) << "the interval holds 1";
    EXPECT_FALSE(choice_of(a_place, rows)->ratio);
    rows[2].confirmation = confirmed(1.01, 1.02, 1.05);
    choice = choice_of(a_place, rows);
    EXPECT_EQ(choice->rank, 3);
    EXPECT_EQ(choice->time_us, 8.5);
    EXPECT_EQ(choice->first_us, 10);
    EXPECT_EQ(choice->ratio->median, 1.02);
    EXPECT_EQ(choice->candidates.size(), 3u);
    EXPECT_EQ(place_of(*choice, plans), 2u);
}

TEST(Tune, WhatIsNoResultIsNoChoice) {
    const PlanSet plans = some_plans();
    std::vector<Measurement> rows = rows_of(plans, {10, 9, 8.5});
    rows[2].confirmation = confirmed(1.1, 1.2, 1.3);
    rows[2].verified.exact = false;
    auto choice = choice_of(a_place, rows);
    EXPECT_EQ(choice->rank, 1);
    EXPECT_EQ(choice->candidates.size(), 2u);
    rows[0].invalid = "does not compile";
    rows[2].verified.exact = true;
    choice = choice_of(a_place, rows);
    EXPECT_EQ(choice->rank, 3) << "the fastest that ran";
    EXPECT_FALSE(choice->ratio) << "with what it was compared failed";
    EXPECT_FALSE(choice->first_us);
    EXPECT_TRUE(place_of(*choice, plans)) << "still looked up by the planner's first";
    rows[1].time_us.reset(), rows[2].time_us.reset();
    EXPECT_FALSE(choice_of(a_place, rows));
}

TEST(Tune, AProblemTakesUnderThreeTenthsOfASecond) {
    const TimingOptions timing = tune_timing();
    // A sequence of launches takes 2 ms or more, so that blocks and leads are as many of those as they begin.
    const auto blocks = [](double seconds) { return std::ceil(seconds / 0.002) * 0.002; };
    const double rounds = tune_rounds(5, tune_count) * tune_count * (blocks(timing.block_seconds) + blocks(timing.lead_seconds));
    const double pair = 2 * (blocks(timing.settled_block_seconds) + blocks(timing.settle_seconds));
    const double paired = std::max(timing.confirmation.seconds + pair, double(timing.confirmation.least) * pair);
    EXPECT_LE(timing.load_seconds + rounds + paired, 0.3);
    EXPECT_GE(median_interval({1, 2, 3, 4, 5, 6}).coverage, 0.95);
    EXPECT_GE(timing.confirmation.least, 6u) << "of fewer pairs the interval covers less than 95 %";
    EXPECT_EQ(timing.alone_seconds, 0);
}

TEST(Tune, LongLaunchesHaveFewRounds) {
    EXPECT_EQ(tune_rounds({}, 4), 4);
    EXPECT_EQ(tune_rounds(20, 4), 4);
    EXPECT_EQ(tune_rounds(1500, 4), 3);  // 80 ms / (2 * 3 ms * 4)
    EXPECT_EQ(tune_rounds(50'000, 4), 2);
    EXPECT_EQ(tune_rounds(20, 16), 2);
}

TEST(Tune, ATaskHasUnlikePlansOfTheSet) {
    PlanSet plans = some_plans();
    const std::string first = first_config(plans);
    plans.plans.insert(plans.plans.begin(), plans.plans.back());
    plans.plans.front().buildable = false;
    const MeasureTask task = tune_task(plans, 3);
    ASSERT_EQ(task.plans.plans.size(), 3u);
    EXPECT_EQ(first_config(task.plans), first);
    EXPECT_EQ(task.rounds, 4);
    plans.plans.resize(1);
    EXPECT_TRUE(tune_task(plans, 3).plans.refusal);
}

}  // namespace
}  // namespace rooftile
