#include "rooftile/tiled/l2_follower.hpp"

namespace rooftile {

std::vector<TileCoordinate> ordered_tiles(int rows, int columns, Order order, int group) {
    std::vector<TileCoordinate> tiles(std::size_t(rows) * std::size_t(columns));
    if (ordered_by_table(order)) {
        for (int i = 0; i < rows * columns; ++i)
            tiles[std::size_t(i)] = order == Order::hilbert ? hilbert_at(i, rows, columns) : morton_at(i, rows, columns);
        return tiles;
    }
    // What tile_at() gives, without its divisions: row by row is bands of one row, column by column one band.
    group = order == Order::row ? 1 : order == Order::column ? rows : std::min(group, rows);
    auto next = tiles.begin();
    for (int first = 0; first < rows; first += group)
        for (int step = 0; step < columns; ++step) {
            const bool back = order == Order::serpentine && first / group % 2 == 1;
            const int column = back ? columns - 1 - step : step;
            for (int row = first; row < std::min(rows, first + group); ++row) *next++ = {row, column};
        }
    return tiles;
}

std::vector<std::int64_t> k_in_parts(std::int64_t blocks, std::int64_t parts) {
    const std::int64_t part = (blocks + parts - 1) / parts;
    std::vector<std::int64_t> sequence;
    sequence.reserve(std::size_t(blocks));
    for (std::int64_t step = 0; step < part; ++step)
        for (std::int64_t block = step; block < blocks; block += part) sequence.push_back(block);
    return sequence;
}

}  // namespace rooftile
