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

/// A CTA's producer and two roles that hear of its tiles.
template <int cluster, int ahead>
struct Told {
    TileSchedulerProducer<cluster, ahead> producer;
    TileSchedulerConsumer<cluster, ahead> consumers[2];
    Told(unsigned at, unsigned* counter, int rows, int columns)
        : producer{.rows = rows, .columns = columns, .told = {at}, .counter = counter},
          consumers{{.rows = rows, .columns = columns, .told = {at}}, {.rows = rows, .columns = columns, .told = {at}}} {
        TileSchedulerPipeline<ahead>{at}.init();
    }
    void next() {
        producer.ask();
        producer.advance();
    }
};

// Producers run ahead by as many tiles as a ring may have stages of one tile each.
TEST(TileSchedulerConsumer, EveryTileIsHeardOnceAndTheCounterIsZero) {
    constexpr int ahead = 5;
    for (const unsigned teams : {1u, 3u, 8u})
        for (const int tiles : {1, 2, 6, 30}) {
            unsigned counter = 0;
            ptx::fake_blocked = 0;
            gridDim.x = teams;
            std::vector<Told<1, ahead>> ctas;
            for (blockIdx.x = 0; blockIdx.x < teams; ++blockIdx.x) ctas.emplace_back(blockIdx.x * TileSchedulerPipeline<ahead>::bytes(), &counter, tiles / (tiles % 2 + 1), tiles % 2 + 1);
            const unsigned all = static_cast<unsigned>(tiles / (tiles % 2 + 1) * (tiles % 2 + 1));
            std::vector<unsigned> brought(all), heard(all);
            for (bool busy = true; busy;) {
                busy = false;
                for (unsigned t = 0; t < teams; ++t) {
                    Told<1, ahead>& cta = ctas[t];
                    for (unsigned i = 0; i <= t % (ahead - 1) && cta.producer.more(); ++i) ++brought[cta.producer.index], cta.next(), busy = true;
                    auto& role = cta.consumers[0];
                    // What it must hear before the producer's next turn.
                    while (role.more() && role.index != cta.producer.index) {
                        ++heard[role.index];
                        EXPECT_EQ(role.more_after_this(), [&] { auto next = role; next.advance(); return next.more(); }());
                        role.advance();
                    }
                }
            }
            EXPECT_EQ(brought, std::vector<unsigned>(all, 1)) << teams << " teams";
            EXPECT_EQ(heard, brought) << teams << " teams";
            EXPECT_EQ(counter, 0u) << teams << " teams, " << tiles << " tiles";
            EXPECT_EQ(ptx::fake_blocked, 0);
        }
}

// In pingpong each hears of all tiles and takes every other one; behind the last neither waits for more.
TEST(TileSchedulerConsumer, RolesThatTakeTurnsEndTogether) {
    constexpr int ahead = 4;
    for (const int tiles : {1, 2, 3}) {
        unsigned counter = 0;
        ptx::fake_blocked = 0;
        gridDim.x = 1, blockIdx.x = 0;
        Told<1, ahead> cta(0, &counter, tiles, 1);
        while (cta.producer.more()) cta.next();
        std::vector<unsigned> taken;
        cta.consumers[1].advance();
        for (unsigned turn = 0; cta.consumers[turn % 2].more(); ++turn) {
            auto& role = cta.consumers[turn % 2];
            taken.push_back(role.index);
            EXPECT_EQ(role.more_after_this(), int(turn) + 1 < tiles);
            role.advance();
            role.advance();
        }
        EXPECT_EQ(taken.size(), std::size_t(tiles));
        for (const auto& role : cta.consumers) EXPECT_FALSE(role.more());
        EXPECT_EQ(ptx::fake_blocked, 0);
    }
}

// The second CTA of a cluster hears from the first.
TEST(TileSchedulerConsumer, CtasOfAClusterTakeTheSameTiles) {
    constexpr int ahead = 3;
    unsigned counter = 0;
    gridDim.x = 2;
    ptx::fake_blocked = 0;
    std::vector<Told<2, ahead>> ctas;
    for (blockIdx.x = 0; blockIdx.x < 2; ++blockIdx.x) ctas.emplace_back(blockIdx.x * ptx::fake_shared_bytes, &counter, 7, 1);
    std::vector<unsigned> taken[2];
    while (ctas[1].producer.more())
        for (ptx::fake_rank = 0; ptx::fake_rank < 2; ++ptx::fake_rank) {
            Told<2, ahead>& cta = ctas[ptx::fake_rank];
            for (int i = 0; i < ahead - 1 && cta.producer.more(); ++i) {
                taken[ptx::fake_rank].push_back(cta.producer.index);
                cta.next();
                cta.consumers[0].advance();
                EXPECT_EQ(cta.consumers[0].index, cta.producer.index);
            }
        }
    EXPECT_EQ(taken[0], (std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(taken[1], taken[0]);
    EXPECT_EQ(ptx::fake_blocked, 0);
    EXPECT_EQ(counter, 0u);
}

}  // namespace
}  // namespace rooftile
