#include "kernels/pipeline/tile_order.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace rooftile {
namespace {

std::vector<std::pair<int, int>> tile_schedule(int rows, int columns, Order order, int group) {
    std::vector<std::pair<int, int>> tiles;
    for (int i = 0; i < rows * columns; ++i) {
        const TileCoordinate t = order == Order::hilbert  ? hilbert_at(i, rows, columns)
                                 : order == Order::morton ? morton_at(i, rows, columns)
                                                          : tile_at(i, rows, columns, order, group);
        tiles.emplace_back(t.row, t.column);
    }
    return tiles;
}

TEST(TileOrder, EveryOrderVisitsEveryTileOnce) {
    for (Order order :
         {Order::row, Order::column, Order::grouped, Order::serpentine, Order::hilbert, Order::morton})
        for (int rows : {1, 2, 5, 8, 31})
            for (int columns : {1, 3, 7, 12})
                for (int group : {1, 2, 3, 16}) {
                    const auto tiles = tile_schedule(rows, columns, order, group);
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
    EXPECT_EQ(tile_schedule(3, 2, Order::grouped, 2),
              (Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}}));
    EXPECT_EQ(tile_schedule(3, 2, Order::serpentine, 2),
              (Tiles{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 1}, {2, 0}}));
}

TEST(TileOrder, HilbertGoesToNeighbours) {
    using Tiles = std::vector<std::pair<int, int>>;
    EXPECT_EQ(tile_schedule(2, 2, Order::hilbert, 1), (Tiles{{0, 0}, {1, 0}, {1, 1}, {0, 1}}));
    for (int rows = 1; rows <= 40; ++rows)
        for (int columns = 1; columns <= 40; ++columns) {
            const auto tiles = tile_schedule(rows, columns, Order::hilbert, 1);
            int diagonal = 0;
            for (std::size_t i = 1; i < tiles.size(); ++i) {
                const int down = std::abs(tiles[i].first - tiles[i - 1].first);
                const int right = std::abs(tiles[i].second - tiles[i - 1].second);
                ASSERT_LE(std::max(down, right), 1) << rows << "x" << columns << " tile " << i;
                diagonal += down + right == 2;
            }
            // Of even sides there is none.
            EXPECT_LE(diagonal, rows % 2 == 0 && columns % 2 == 0 ? 0 : 1) << rows << "x" << columns;
        }
}

// Bits of x and y in turns, y first: a cell's place on the whole curve.
std::uint64_t interleaved(unsigned row, unsigned column) {
    std::uint64_t place = 0;
    for (int bit = 0; bit < 16; ++bit)
        place |= std::uint64_t(column >> bit & 1) << 2 * bit | std::uint64_t(row >> bit & 1) << (2 * bit + 1);
    return place;
}

TEST(TileOrder, MortonIsTheZOrderOfTheCellsInside) {
    using Tiles = std::vector<std::pair<int, int>>;
    EXPECT_EQ(tile_schedule(2, 3, Order::morton, 1), (Tiles{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {1, 2}}));
    for (int rows = 1; rows <= 40; ++rows)
        for (int columns = 1; columns <= 40; ++columns) {
            Tiles inside;
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column) inside.emplace_back(row, column);
            std::sort(inside.begin(), inside.end(), [](auto x, auto y) {
                return interleaved(unsigned(x.first), unsigned(x.second))
                       < interleaved(unsigned(y.first), unsigned(y.second));
            });
            ASSERT_EQ(tile_schedule(rows, columns, Order::morton, 1), inside) << rows << "x" << columns;
        }
}

TEST(TileOrder, PackedTilesComeBack) {
    for (int row : {0, 1, 255, 65535})
        for (int column : {0, 2, 256, 65535}) {
            const TileCoordinate t = tile_of(packed({row, column}));
            EXPECT_EQ(t.row, row);
            EXPECT_EQ(t.column, column);
        }
}

TEST(TileOrder, ManyTilesDoNotOverflow) {
    const int columns = 1 << 27, rows = 15;  // group * columns would be 2^31
    const TileCoordinate last = tile_at(rows * columns - 1, rows, columns, Order::grouped, 16);
    EXPECT_EQ(last.row, rows - 1);
    EXPECT_EQ(last.column, columns - 1);
    const TileCoordinate end = hilbert_at(rows * columns - 1, rows, columns);
    EXPECT_EQ(end.column, columns - 1);
    const TileCoordinate last_on_z = morton_at(rows * columns - 1, rows, columns);
    EXPECT_EQ(last_on_z.row, rows - 1);
    EXPECT_EQ(last_on_z.column, columns - 1);
}

}  // namespace
}  // namespace rooftile
