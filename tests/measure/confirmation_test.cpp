// The second stage of a comparison, with made-up block times.
#include "rooftile/measure/confirmation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rooftile/measure/ratios.hpp"

namespace rooftile {
namespace {

using Blocks = std::vector<RoundTime>;

Blocks blocks_of(const std::vector<double>& us) {
    Blocks blocks;
    for (std::size_t round = 0; round < us.size(); ++round) blocks.push_back({round, us[round]});
    return blocks;
}

// Ratios of plan 2: 100/98, 102/99 -> median 1.0254. Of plan 3, in round 1 alone: 102/101 = 1.0099. Of plan 4:
// 100/101, below 1.
TEST(AheadOfFirst, IsTheFastestByTheRoundsThatBothHave) {
    const std::vector<Blocks> rounds = {
        blocks_of({100, 102}), blocks_of({98, 99}), {{1, 101}}, blocks_of({101})};
    EXPECT_EQ(ahead_of_first(rounds, 1.01), 1u);
    EXPECT_EQ(ahead_of_first(rounds, 1.02), 1u);
    EXPECT_FALSE(ahead_of_first(rounds, 1.03));
    EXPECT_EQ(ahead_of_first(std::vector<Blocks>{rounds[0], rounds[2]}, 1), 1u);
    EXPECT_FALSE(ahead_of_first(std::vector<Blocks>{rounds[0], rounds[2]}, 1.01));
    EXPECT_FALSE(ahead_of_first(std::vector<Blocks>{rounds[0], rounds[3]}, 1));
    EXPECT_FALSE(ahead_of_first(std::vector<Blocks>{rounds[0]}, 1));
    EXPECT_FALSE(ahead_of_first({}, 1));
    EXPECT_FALSE(ahead_of_first(std::vector<Blocks>{{}, rounds[1]}, 1));  // plan 1 was never timed
}

TEST(ConfirmationOrder, EachGoesFirstInEveryOtherRound) {
    for (const std::uint64_t seed : {4u, 7u}) {
        for (std::size_t round = 0; round < 4; ++round) {
            const auto order = confirmation_order(2, 5, round, seed),
                       next = confirmation_order(2, 5, round + 1, seed);
            EXPECT_EQ(order[0], next[1]);
            EXPECT_EQ(order[1], next[0]);
        }
    }
    EXPECT_NE(confirmation_order(2, 5, 0, 0)[0], confirmation_order(2, 5, 0, 1)[0]);
}

// ln 1.01 = 0.00995033 and 0: mean 0.00497517, deviation 0.00703595, over sqrt 2 the mean's error 0.00497517; the
// median's is sqrt(pi / 2) = 1.2533141 times as much.
TEST(RatioError, ByHand) {
    EXPECT_NEAR(ratio_error(blocks_of({101, 100}), blocks_of({100, 100})).value(), 0.00497517 * 1.2533141,
                1e-8);
    EXPECT_EQ(ratio_error(blocks_of({101, 101, 101}), blocks_of({100, 100, 100})), 0.0);
    EXPECT_FALSE(ratio_error(blocks_of({101}), blocks_of({100})));
    EXPECT_FALSE(ratio_error({}, {}));
}

TEST(ConfirmationOver, AtTheErrorTheTimeOrTheRounds) {
    const ConfirmationOptions options{
        .plans = 8, .rounds = 6, .least = 3, .above = 1, .error = 0.005, .seconds = 2};
    const Blocks flat = blocks_of({100, 100, 100, 100, 100, 100}),
                 rough = blocks_of({104, 96, 105, 97, 103, 95});
    const auto over = [&](const Blocks& first, std::size_t rounds, double seconds) {
        return confirmation_over(std::span(first).first(rounds), std::span(flat).first(rounds), seconds,
                                 options);
    };
    EXPECT_FALSE(over(flat, 0, 0));
    EXPECT_FALSE(over(flat, 2, 9));  // too few, however long
    EXPECT_TRUE(over(flat, 3, 0));   // as sure as it has to be
    EXPECT_FALSE(over(rough, 3, 1.9));
    EXPECT_TRUE(over(rough, 3, 2));
    EXPECT_FALSE(over(rough, 5, 1.9));
    EXPECT_TRUE(over(rough, 6, 1.9));
    EXPECT_TRUE(confirmation_over({}, {}, 0, {}));  // no rounds, no paired re-measurement
}

TEST(ConfirmationOf, IsOfItsOwnBlocksAlone) {
    TimedResult first, fastest, other;
    first.rounds = blocks_of({100, 100}), fastest.rounds = blocks_of({95, 95});
    other.rounds = blocks_of({98, 98});
    EXPECT_FALSE(confirmation_of(first, fastest));
    EXPECT_NEAR(rank1_ratio(first, fastest).value(), 100.0 / 95, 1e-12);
    first.confirmation = blocks_of({101, 102, 103}), fastest.confirmation = blocks_of({100, 100, 100});
    const auto confirmation = confirmation_of(first, fastest);
    ASSERT_TRUE(confirmation);
    EXPECT_NEAR(confirmation->ratio.median, 1.02, 1e-12);
    EXPECT_EQ(confirmation->ratio.samples, 3);
    EXPECT_NEAR(confirmation->first_ratio, 100.0 / 95, 1e-12);
    EXPECT_NEAR(rank1_ratio(first, fastest).value(), 1.02, 1e-12);
    EXPECT_NEAR(rank1_ratio(first, other).value(), 100.0 / 98, 1e-12);  // which had none
    EXPECT_FALSE(rank1_ratio(first, {}));
}

/// Eight plans whose blocks scatter by 1.5 %, the last `gain` times as fast as the others: what the rounds say of
/// the fastest, and what a paired re-measurement does, means over many draws.
struct Means {
    double chosen_by = 0, confirmed = 0, rounds = 0;
    int draws = 0;
};
Means draw(double gain, const ConfirmationOptions& options) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> noise(0, 0.015);
    const auto block = [&](std::size_t plan) {
        return (plan == 7 ? 100 / gain : 100) * std::exp(noise(random));
    };
    Means means;
    for (int draws = 0; draws < 4000; ++draws) {
        std::vector<Blocks> plans(8);
        for (std::size_t plan = 0; plan < 8; ++plan)
            for (std::size_t round = 0; round < (plan == 0 ? 4u : 2u); ++round)
                plans[plan].push_back({round, block(plan)});
        const auto fastest = ahead_of_first(plans, options.above);
        if (!fastest) continue;
        Blocks first, other;
        for (std::size_t round = 0; !confirmation_over(first, other, 0.25 * double(round), options);
             ++round) {
            first.push_back({round, block(0)});
            other.push_back({round, block(*fastest)});
        }
        if (gain > 1 && *fastest != 7) continue;  // the mean is of the pair whose truth is known
        ++means.draws;
        means.chosen_by += std::log(round_ratio(plans[0], plans[*fastest])->median);
        means.confirmed += std::log(round_ratio(first, other)->median);
        means.rounds += double(first.size());
    }
    means.chosen_by = std::exp(means.chosen_by / means.draws);
    means.confirmed = std::exp(means.confirmed / means.draws);
    means.rounds /= means.draws;
    return means;
}

// The mean of 2500 medians of some 7 pairs that scatter by 2.1 % is known to 0.02 %.
TEST(Confirmation, HasNoWinnersCurse) {
    const ConfirmationOptions options{.plans = 8, .rounds = 12};
    const Means equal = draw(1, options);
    EXPECT_GT(equal.draws, 2000);
    EXPECT_GT(equal.chosen_by, 1.02);  // the curse
    EXPECT_NEAR(equal.confirmed, 1, 0.001);
    EXPECT_LE(equal.rounds, 8);  // 1.75 s at 0.25 s a round
    const Means better = draw(1.05, options);
    EXPECT_GT(better.draws, 3000);
    EXPECT_NEAR(better.confirmed, 1.05, 0.001);
}

}  // namespace
}  // namespace rooftile
