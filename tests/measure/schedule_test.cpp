#include "rooftile/measure/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rooftile {
namespace {

using testing::ElementsAre;

// One leader, two baselines, three others in 3 of 6 rounds: 9 blocks of others over 6 rounds are 1 or 2 a round.
TEST(BlockRounds, ComparedStandTogetherAndOthersAreSpread) {
    const std::vector<Role> roles = {Role::leader,   Role::other,    Role::other, Role::other,
                                     Role::baseline, Role::baseline, Role::aside};
    const auto rounds = block_rounds(roles, 6, 3, 1);
    ASSERT_EQ(rounds.size(), 6u);
    std::map<std::size_t, int> blocks;
    for (const auto& round : rounds) {
        std::vector<std::size_t> first(round.begin(), round.begin() + 3);
        std::sort(first.begin(), first.end());
        EXPECT_THAT(first, ElementsAre(0, 4, 5));
        EXPECT_GE(round.size(), 4u);
        EXPECT_LE(round.size(), 5u);
        for (const std::size_t work : round) ++blocks[work];
    }
    for (const std::size_t compared : {0u, 4u, 5u}) EXPECT_EQ(blocks[compared], 6);
    for (const std::size_t other : {1u, 2u, 3u}) EXPECT_EQ(blocks[other], 3);
    EXPECT_EQ(blocks.count(6), 0u);  // aside
}

TEST(BlockRounds, EveryOtherHasOneBlockBeforeAnyHasTwo) {
    const std::vector<Role> roles = {Role::leader, Role::other, Role::other, Role::other, Role::other};
    std::vector<std::size_t> others;
    for (const auto& round : block_rounds(roles, 7, 3, 5)) {
        std::copy_if(round.begin(), round.end(), std::back_inserter(others),
                     [](std::size_t work) { return work > 0; });
    }
    ASSERT_EQ(others.size(), 12u);
    for (std::size_t pass = 0; pass < 3; ++pass) {
        std::vector<std::size_t> once(others.begin() + std::ptrdiff_t(4 * pass),
                                      others.begin() + std::ptrdiff_t(4 * pass + 4));
        std::sort(once.begin(), once.end());
        EXPECT_THAT(once, ElementsAre(1, 2, 3, 4)) << pass;
    }
}

TEST(BlockRounds, AsManyRoundsOfOthersStandInEach) {
    for (const auto& round : block_rounds(std::vector<Role>{Role::leader, Role::other, Role::other}, 5, 5, 2))
        EXPECT_THAT(round, testing::UnorderedElementsAre(0, 1, 2));
    // More than there are rounds are not asked for.
    EXPECT_EQ(block_rounds(std::vector<Role>{Role::other}, 2, 9, 2)[1].size(), 1u);
    EXPECT_TRUE(block_rounds({}, 2, 1, 0)[0].empty());
}

TEST(KeptBaselines, AreTheFirstThatRunsAndTheFastest) {
    EXPECT_THAT(kept_baselines(std::vector<double>{0, 5, 4, 3, 2}, 2, 2),
                ElementsAre(false, true, false, true, true));
    EXPECT_THAT(kept_baselines(std::vector<double>{1, 5, 4}, 2, 9), ElementsAre(true, false, true));
    EXPECT_THAT(kept_baselines(std::vector<double>{3}, 2, 1.02), ElementsAre(true));
    EXPECT_THAT(kept_baselines(std::vector<double>{0, 0}, 2, 1.02), ElementsAre(false, false));
    EXPECT_TRUE(kept_baselines({}, 2, 1.02).empty());
    // 102 is within 2 % of 100, 103 is not; the first stays however slow it is.
    EXPECT_THAT(kept_baselines(std::vector<double>{150, 103, 100, 102}, 3, 1.02),
                ElementsAre(true, false, true, true));
    EXPECT_THAT(kept_baselines(std::vector<double>{150, 103, 100}, 2, 1.02), ElementsAre(true, false, true));
}

}  // namespace
}  // namespace rooftile
