#include "kernels/gemm/tile_order.cuh"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace rooftile {
namespace {

std::vector<std::pair<int, int>> walk(int rows, int columns, Order order, int group) {
    std::vector<std::pair<int, int>> tiles;
    for (int i = 0; i < rows * columns; ++i) {
        const TileCoordinate t = tile_at(i, rows, columns, order, group);
        tiles.emplace_back(t.row, t.column);
    }
    return tiles;
}

TEST(TileOrder, EveryOrderVisitsEveryTileOnce) {
    for (Order order : {Order::row, Order::column, Order::grouped, Order::serpentine})
        for (int rows : {1, 2, 5, 8})
            for (int columns : {1, 3, 7})
                for (int group : {1, 2, 3, 16}) {
                    const auto tiles = walk(rows, columns, order, group);
                    const std::set<std::pair<int, int>> distinct(tiles.begin(), tiles.end());
                    EXPECT_EQ(distinct.size(), std::size_t(rows) * columns);
                    for (const auto& [row, column] : distinct) {
                        EXPECT_TRUE(row >= 0 && row < rows && column >= 0 && column < columns);
                    }
                }
}

TEST(TileOrder, BandsAndTurns) {
    using Tiles = std::vector<std::pair<int, int>>;
    // Three rows in bands of two: the first band column by column, the last row alone.
    EXPECT_EQ(walk(3, 2, Order::grouped, 2), (Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}}));
    EXPECT_EQ(walk(3, 2, Order::serpentine, 2), (Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 1}, {2, 0}}));
}

TEST(TileOrder, ManyTilesDoNotOverflow) {
    const int columns = 1 << 27, rows = 15;  // group * columns would be 2^31
    const TileCoordinate last = tile_at(rows * columns - 1, rows, columns, Order::grouped, 16);
    EXPECT_EQ(last.row, rows - 1);
    EXPECT_EQ(last.column, columns - 1);
}

}  // namespace
}  // namespace rooftile
