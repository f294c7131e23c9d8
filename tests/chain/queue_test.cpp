// One kernel's queue of tiles of two products: that everything is in it once, that nobody waits for what comes later, and what it takes.
#include "rooftile/chain/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "rooftile/core/random.hpp"

namespace rooftile {
namespace {

struct Case {
    ChainProduct first, second;
    RowChunks chunks;
};

Case drawn(Random& random) {
    Case c;
    ChainProduct& a = c.first;
    a.m = random.whole(1, 6000), a.n = random.whole(8, 900), a.k = random.whole(8, 900);
    a.tile_m = int(8 * random.whole(1, 32)), a.tile_n = int(16 * random.whole(1, 16)), a.tile_k = 64, a.stages = int(random.whole(2, 6));
    a.order = random.coin() ? Order::row : Order::grouped, a.group = int(random.whole(1, 6));
    c.second = a;
    c.second.n = a.k, c.second.k = a.n, c.second.tile_m = int(8 * random.whole(1, 32)), c.second.order = random.coin() ? Order::row : Order::column;
    const std::int64_t unit = std::lcm(a.tile_m, c.second.tile_m), rows = unit * random.whole(1, 6);
    c.chunks = {rows >= a.m || random.one_in(4) ? a.m : rows, int(random.whole(2, 4))};
    return c;
}

TEST(ChainQueue, EveryTileIsThereOnceAndWaitsForEarlierOnesAlone) {
    Random random(7);
    for (int i = 0; i < 400; ++i) {
        const Case c = drawn(random);
        const ChunkedOrder order = queue_order(c.first, c.second, c.chunks);
        SCOPED_TRACE(testing::Message() << c.first.m << " rows in tiles of " << c.first.tile_m << " and " << c.second.tile_m << ", chunks of " << c.chunks.rows);
        std::vector<int> stored(std::size_t(order.first.rows), 0), read(std::size_t(order.chunks), 0);
        std::set<std::pair<int, int>> seen[2];
        for (int number = 0; number < order.tiles(); ++number) {
            const ChunkedOrder::Tile tile = order.at(number);
            const ChunkedTiles& product = tile.of_second ? order.second : order.first;
            const TileCoordinate t = product.at(tile.index);
            ASSERT_TRUE(t.row >= 0 && t.row < product.rows && t.column >= 0 && t.column < product.columns);
            ASSERT_TRUE(seen[tile.of_second].insert({t.row, t.column}).second) << "twice";
            if (tile.of_second) {
                const std::int64_t row = std::int64_t{t.row} * c.second.tile_m, end = std::min(row + c.second.tile_m, c.first.m);
                for (std::int64_t block = row / c.first.tile_m; block * c.first.tile_m < end; ++block)
                    ASSERT_EQ(stored[std::size_t(block)], order.first.columns) << "reads rows that come later";
                ++read[std::size_t(t.row / order.second.chunk_rows)];
            } else {
                ++stored[std::size_t(t.row)];
                if (const int before = t.row / order.first.chunk_rows - c.chunks.in_room; before >= 0) {
                    ASSERT_EQ(read[std::size_t(before)], order.second.chunk_tiles()) << "is stored over rows that are read later";
                }
            }
        }
        EXPECT_EQ(int(seen[0].size()), order.first.tiles());
        EXPECT_EQ(int(seen[1].size()), order.second.tiles());
    }
}

TEST(ChainQueue, TakesNoLessThanItsWorkAndNoMoreThanOneTileAfterTheOther) {
    Random random(8);
    for (int i = 0; i < 200; ++i) {
        const Case c = drawn(random);
        const ChunkedOrder order = queue_order(c.first, c.second, c.chunks);
        if (order.tiles() > followed_tiles) continue;
        const QueueTimes times{1e-6 * double(random.whole(1, 20)), 1e-6 * double(random.whole(1, 20)), 1e-6, 2e-7};
        const double work = order.first.tiles() * times.first_tile + order.second.tiles() * times.second_tile;
        const std::int64_t ctas = random.whole(1, 132);
        const QueueRun run = run_queue(c.first, c.second, order, c.chunks.in_room, times, ctas);
        EXPECT_GE(run.seconds, work / double(ctas) * (1 - 1e-9));
        EXPECT_GE(run.seconds, times.first_tile + times.second_tile);
        const double waits = order.tiles() * (times.seen + times.look * (1 + double(c.second.tile_m) / c.first.tile_m + 1));
        EXPECT_LE(run.seconds, work + waits);
        if (ctas == 1) { EXPECT_GE(run.seconds, work * (1 - 1e-9)); }
    }
}

// 150 tiles of one product on 132 CTAs and 150 of the other: two waves each by themselves, and no more than the work and a tile from one queue.
TEST(ChainQueue, TheSecondProductFillsWhatTheFirstLeaves) {
    ChainProduct p;
    p.m = 150 * 128, p.n = 128, p.k = 4096, p.tile_m = p.tile_n = 128, p.tile_k = 64, p.stages = 4;
    ChainProduct second = p;
    const QueueTimes times{1e-5, 1e-5, 1e-6, 2e-7};
    const QueueRun run = run_queue(p, second, queue_order(p, second, {p.m}), 2, times, 132);
    EXPECT_LT(run.seconds, 3.3e-5);
    EXPECT_GE(run.seconds, 300 * 1e-5 / 132);
}

}  // namespace
}  // namespace rooftile
