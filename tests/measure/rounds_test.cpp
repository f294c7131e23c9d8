// Rounds with made-up noise: who is left out, when they end, and what the ratio is worth then.
#include "rooftile/measure/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr Role leader = Role::leader, roof = Role::roof, other = Role::other, baseline = Role::baseline, aside = Role::aside;

/// Goes on to the end; `us` says how long a work's block took in a round, `seconds` how long a round does. How many rounds.
template <class Us>
std::size_t run(Rounds& rounds, Us us, double seconds = 0) {
    std::size_t count = 0;
    for (auto order = rounds.next(0); !order.empty(); order = rounds.next(double(count) * seconds)) {
        ++count;
        for (const std::size_t w : order) rounds.add(w, {rounds.round(), us(w, rounds.round())});
    }
    return count;
}

TEST(Rounds, EveryCompetitorOnceInOrdersThatDiffer) {
    Rounds rounds({leader, other, baseline, aside}, {.least = 40, .most = 40}, 3), same = rounds;
    std::set<std::size_t> first;
    for (std::size_t round = 0; round < 40; ++round) {
        const auto order = rounds.next(0);
        EXPECT_THAT(order, UnorderedElementsAre(0, 1, 2, 3));
        EXPECT_EQ(order, same.next(0));
        EXPECT_EQ(rounds.round(), round);
        first.insert(order.front());
    }
    EXPECT_EQ(first.size(), 4u);
    EXPECT_THAT(rounds.next(0), IsEmpty());
}

TEST(Rounds, EndAtTheLeastTheErrorTheTimeOrTheMost) {
    const RoundOptions options{.least = 6, .most = 30, .error = 0.01, .seconds = 2};
    const auto flat = [](std::size_t, std::size_t) { return 100.0; };
    // The ratio alternates between 1.1 and 1 / 1.1: logs of +-0.0953. After 30 rounds its error is still
    // 1.2533 x 0.0953 x sqrt(30 / 29) / sqrt(30) = 0.0222.
    const auto rough = [](std::size_t w, std::size_t round) { return w == 1 && round % 2 == 0 ? 121.0 : w == 0 ? 110 : 100; };
    Rounds sure({leader, baseline}, options, 1), unsure = sure, slow = sure, hurried = sure;
    EXPECT_EQ(run(sure, flat), 6u);
    EXPECT_EQ(run(unsure, rough), 30u);
    EXPECT_EQ(run(slow, rough, 0.2), 10u);
    EXPECT_EQ(run(hurried, rough, 9), 6u);
}

// What the clock does to both leaves their ratio alone: +-10 % from round to round, and the rounds end at once.
TEST(Rounds, AClockThatDriftsIsNoScatterOfTheRatio) {
    Rounds rounds({leader, baseline}, {.error = 0.003}, 1);
    EXPECT_EQ(run(rounds, [](std::size_t w, std::size_t round) { return (w == 0 ? 100 : 103) * (round % 2 ? 1.1 : 0.9); }), 6u);
}

// Without a baseline it is the fastest roof, without one its own time. Logs of 0 and ln 1.02 = 0.0198: the error is
// 1.2533 x 0.0099 x sqrt(n / (n - 1)) / sqrt(n), below 0.003 from n = 19 on (0.00292; n = 18: 0.00301).
TEST(Rounds, WithoutABaselineTheErrorIsOfWhatThereIs) {
    const auto us = [](std::size_t w, std::size_t round) { return w == 0 && round % 2 ? 102.0 : 100.0; };
    Rounds alone({leader}, {}, 1), beside({leader, roof, aside}, {}, 1);
    const std::size_t rounds = run(alone, us);
    EXPECT_GE(rounds, 18u);
    EXPECT_LE(rounds, 20u);
    EXPECT_EQ(run(beside, us), rounds);
    EXPECT_EQ(beside.times(2).size(), 6u);  // what is not compared: the least
}

TEST(Rounds, ClearlySlowerOnesAreDroppedFromTheFifthRoundOn) {
    // Plan 2 is 10 % behind plan 1, plan 3 is ahead of it by 10 %: of ours, plan 3 is the fastest, and a leader stays.
    // Of the baselines 7 is 4 % behind 4, which is not clear; 5 is 9 % behind.
    const double us[] = {100, 110, 90, 300, 200, 218, 900, 208};
    Rounds rounds({leader, other, other, leader, baseline, baseline, baseline, baseline}, {.least = 12, .most = 12}, 1);
    rounds.leave_out(6);
    EXPECT_EQ(run(rounds, [&](std::size_t w, std::size_t) { return us[w]; }), 12u);
    for (const std::size_t stays : {0u, 2u, 3u, 4u, 7u}) {
        EXPECT_FALSE(rounds.dropped(stays)) << stays;
        EXPECT_EQ(rounds.times(stays).size(), 12u) << stays;
    }
    for (const std::size_t dropped : {1u, 5u}) {
        EXPECT_TRUE(rounds.dropped(dropped)) << dropped;
        EXPECT_EQ(rounds.times(dropped).size(), 4u) << dropped;
    }
    EXPECT_TRUE(rounds.times(6).empty());
}

// A copy that takes a third of our time says nothing of which of our plans is the fastest.
TEST(Rounds, ARoofDropsNobodyAndIsNotDropped) {
    const double us[] = {100, 95, 30, 300};
    Rounds rounds({leader, other, roof, roof}, {.least = 12, .most = 12}, 1);
    run(rounds, [&](std::size_t w, std::size_t) { return us[w]; });
    for (std::size_t w = 0; w < 4; ++w) EXPECT_EQ(rounds.times(w).size(), 12u) << w;
}

TEST(Rounds, WhatScattersIsNotClearlySlower) {
    // 10 % behind in the mean of two halves, 0 and 20 %: after 12 rounds 0.0912 with an error of 0.0275, 3.3 of them.
    Rounds rounds({leader, baseline, baseline}, {.least = 12, .most = 12}, 1);
    run(rounds, [](std::size_t w, std::size_t round) { return w == 2 && round % 2 ? 120.0 : 100.0; });
    EXPECT_FALSE(rounds.dropped(2));
}

// Short blocks that scatter, then others: what was dropped keeps its samples, and what stands has new ones alone.
TEST(Rounds, BeginAgainWithWhatStands) {
    Rounds rounds({leader, baseline, baseline, aside}, {.least = 6, .most = 40, .error = 0.01}, 1);
    const auto rough = [](std::size_t w, std::size_t round) { return w == 1 ? round % 2 ? 90.0 : 110 : w == 2 ? 200 : 100; };
    for (int i = 0; i < 6; ++i)
        for (const std::size_t w : rounds.next(0)) rounds.add(w, {rounds.round(), rough(w, rounds.round())});
    EXPECT_FALSE(rounds.sure());
    rounds.begin_again(3);
    EXPECT_EQ(run(rounds, [](std::size_t w, std::size_t) { return w == 0 ? 100.0 : 97; }), 6u);
    EXPECT_TRUE(rounds.sure());
    ASSERT_EQ(rounds.times(1).size(), 6u);
    EXPECT_EQ(rounds.times(1).front().round, 6u);
    EXPECT_TRUE(rounds.dropped(2));
    EXPECT_EQ(rounds.times(2).size(), 4u);
    EXPECT_EQ(rounds.times(3).size(), 6u);
    EXPECT_NEAR(round_ratio(rounds.times(1), rounds.times(0))->median, 0.97, 1e-12);
    EXPECT_FALSE(round_ratio(rounds.times(2), rounds.times(0)));  // no round has both any more
}

TEST(Rounds, BeginAgainWithTheFastestOfEachKind) {
    const double us[] = {105, 103, 101, 102, 30, 99, 98, 97, 100};
    Rounds rounds({leader, other, other, other, roof, baseline, baseline, baseline, baseline}, {}, 1);
    for (int i = 0; i < 6; ++i)
        for (const std::size_t w : rounds.next(0)) rounds.add(w, {rounds.round(), us[w]});
    rounds.begin_again(2);
    EXPECT_THAT(rounds.next(0), UnorderedElementsAre(0, 2, 3, 4, 6, 7));
    for (const std::size_t gone : {1u, 5u, 8u}) {
        EXPECT_TRUE(rounds.dropped(gone)) << gone;
        EXPECT_EQ(rounds.times(gone).size(), 6u) << gone;
    }
}

TEST(Rounds, NothingRunsNothingIsAsked) {
    Rounds none({}, {}, 1), broken({leader}, {}, 1);
    EXPECT_THAT(none.next(0), IsEmpty());
    broken.leave_out(0);
    EXPECT_THAT(broken.next(0), IsEmpty());
}

/// A run of ours beside eight algorithms: 3 % of noise of each block over a clock that wanders by 1.5 %.
struct Drawn {
    std::mt19937_64 random;
    std::normal_distribution<double> normal{0, 1};
    double wander = 0;
    double block(double us) {
        wander = 0.8 * wander + 0.6 * normal(random);
        return us * std::exp(0.015 * wander + 0.03 * normal(random));
    }
};

struct Outcome {
    int draws = 0, best_dropped = 0, covered = 0, slow_dropped = 0;
    double rounds = 0, coverage = 0, log_ratio = 0;
};
/// `times` of the algorithms, the first of them the fastest; ours takes 100.
Outcome draw(const std::vector<double>& times, int draws) {
    Outcome outcome;
    Drawn noise{std::mt19937_64(5)};
    std::vector<Role> roles(times.size() + 1, baseline);
    roles[0] = leader;
    for (; outcome.draws < draws; ++outcome.draws) {
        Rounds rounds(roles, {.most = 120, .error = 0.005}, std::uint64_t(outcome.draws));
        outcome.rounds += double(run(rounds, [&](std::size_t w, std::size_t) {
            return noise.block(w == 0 ? 100 : times[w - 1]);
        }));
        outcome.best_dropped += rounds.dropped(1);
        outcome.slow_dropped += rounds.dropped(times.size());
        const auto ratio = round_ratio(rounds.times(1), rounds.times(0));
        const double truth = times[0] / 100;
        outcome.covered += ratio->low <= truth && truth <= ratio->high;
        outcome.coverage += ratio->coverage;
        outcome.log_ratio += std::log(ratio->median / truth);
    }
    outcome.rounds /= draws, outcome.coverage /= draws, outcome.log_ratio /= draws;
    return outcome;
}

// Pairs scatter by 4.4 %: an error of 0.5 % takes (1.2533 x 4.4 / 0.5)^2 = 120 rounds or somewhat less.
TEST(Rounds, TheFastestIsNeverDroppedAndTheRatioIsUnbiased) {
    const Outcome o = draw({102, 102, 103, 104, 106, 110, 130, 200}, 300);
    EXPECT_EQ(o.best_dropped, 0);
    EXPECT_EQ(o.slow_dropped, o.draws);
    EXPECT_GT(o.rounds, 60);
    EXPECT_LE(o.rounds, 120);
    EXPECT_NEAR(o.log_ratio, 0, 0.001);  // 0.5 % / sqrt(300) = 0.03 %
}

// Ending at a small error makes the scatter look smaller than it is, most of all where few rounds are enough. What is printed
// must hold all the same: of 2000 runs with a coverage of c, 2000 c have the truth in their interval, give or take
// 2 x sqrt(0.05 x 0.95 / 2000) = 1 %; 2 % are granted to the ending.
TEST(Rounds, IntervalsCoverWhatTheySayDespiteTheEnding) {
    for (const double error : {0.005, 0.02}) {
        Drawn noise{std::mt19937_64(9)};
        constexpr int draws = 2000;
        int covered = 0;
        double said = 0;
        for (int i = 0; i < draws; ++i) {
            Rounds rounds({leader, baseline}, {.most = 120, .error = error}, std::uint64_t(i));
            run(rounds, [&](std::size_t w, std::size_t) { return noise.block(w == 0 ? 100 : 97); });
            const auto ratio = round_ratio(rounds.times(1), rounds.times(0));
            covered += ratio->low <= 0.97 && 0.97 <= ratio->high;
            said += ratio->coverage / draws;
        }
        EXPECT_GE(said, 0.95) << error;
        EXPECT_GE(double(covered) / draws, said - 0.03) << error;
    }
}

}  // namespace
}  // namespace rooftile
