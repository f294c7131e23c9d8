// The text of kernels/pipeline/scheduler.cuh, run on the CPU: every tile is taken once, in whichever order teams come.
// tests/fake/device stands in for barriers and the cluster.
namespace {

/// CUDA's: counts up to `last`, then from 0 again.
unsigned atomicInc(unsigned* counter, unsigned last) {
    const unsigned before = *counter;
    *counter = before >= last ? 0 : before + 1;
    return before;
}

}  // namespace

#include "kernels/pipeline/scheduler.cuh"

#include <gtest/gtest.h>

#include <new>
#include <vector>

namespace rooftile {
namespace {

using Alone = DynamicTileScheduler<1, 1>;

std::vector<Alone> teams_of(unsigned teams, unsigned* counter, unsigned tiles) {
    static Alone::Places places;
    std::vector<Alone> out;
    gridDim.x = teams;
    for (blockIdx.x = 0; blockIdx.x < teams; ++blockIdx.x) out.emplace_back(places, counter, tiles);
    return out;
}

TEST(DynamicTileScheduler, TakesEveryTileOnceAndLeavesTheCounterAtZero) {
    for (const unsigned teams : {1u, 3u, 8u})
        for (const unsigned tiles : {1u, 5u, 17u}) {
            unsigned counter = 0, left = tiles;
            std::vector<unsigned> taken(tiles);
            std::vector<Alone> all = teams_of(teams, &counter, tiles);
            // Team t takes t + 1 tiles while the others wait.
            for (unsigned turn = 0; left > 0; ++turn) {
                Alone& team = all[turn % teams];
                for (unsigned i = 0; i <= turn % teams && team.more(); ++i, --left) {
                    ++taken[team.index()];
                    team.ask();
                    team.advance();
                }
            }
            EXPECT_EQ(taken, std::vector<unsigned>(tiles, 1)) << teams << " teams";
            for (const Alone& team : all) EXPECT_FALSE(team.more());
            EXPECT_EQ(counter, 0u) << teams << " teams, " << tiles << " tiles";
        }
}

TEST(DynamicTileScheduler, WithoutACounterTurnsAreFixed) {
    Alone team = teams_of(3, nullptr, 8)[1];
    for (const unsigned tile : {1u, 4u, 7u}) {
        EXPECT_EQ(team.index(), tile);
        team.ask();
        team.advance();
    }
    EXPECT_FALSE(team.more());
}

// The first CTA of a team runs three tiles ahead of the second, which hears the same.
TEST(DynamicTileScheduler, CtasOfATeamTakeTheSameTiles) {
    constexpr int ahead = 3;
    using Paired = DynamicTileScheduler<2, ahead>;
    unsigned counter = 0;
    constexpr unsigned tiles = 7;
    gridDim.x = 2;
    std::vector<Paired> ctas;
    for (unsigned rank = 0; rank < 2; ++rank) {
        blockIdx.x = rank;
        auto* const places = new (ptx::fake_shared[rank]) Paired::Places;
        Paired::init(*places);
        ctas.emplace_back(*places, &counter, tiles);
    }
    ptx::fake_blocked = 0;
    std::vector<unsigned> taken[2];
    for (unsigned lap = 0; ctas[1].more(); ++lap)
        for (unsigned rank = 0; rank < 2; ++rank) {
            ptx::fake_rank = rank;
            for (int i = 0; i < ahead && ctas[rank].more(); ++i) {
                taken[rank].push_back(ctas[rank].index());
                ctas[rank].ask();
                ctas[rank].advance();
            }
        }
    EXPECT_EQ(taken[0], (std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(taken[1], taken[0]);
    EXPECT_EQ(ptx::fake_blocked, 0);
    EXPECT_EQ(counter, 0u);
}

}  // namespace
}  // namespace rooftile
