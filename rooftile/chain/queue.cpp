#include "rooftile/chain/queue.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

ChunkedTiles tiles_of(const ChainProduct& p, std::int64_t chunk_rows) {
    const std::int64_t rows = ceil_div(p.m, p.tile_m);
    return {int(rows), int(ceil_div(p.n, p.tile_n)), int(chunk_rows >= p.m ? rows : chunk_rows / p.tile_m), int(p.order), p.group};
}

}  // namespace

ChunkedOrder queue_order(const ChainProduct& first, const ChainProduct& second, const RowChunks& chunks) {
    const int count = chunks.rows >= first.m ? 1 : int(ceil_div(first.m, chunks.rows));
    return {tiles_of(first, chunks.rows), tiles_of(second, chunks.rows), count};
}

QueueRun run_queue(const ChainProduct& first, const ChainProduct& second, const ChunkedOrder& order, int room_chunks, const QueueTimes& times,
                   std::int64_t ctas) {
    const double all = double(order.first.rows) * order.first.columns + double(order.second.rows) * order.second.columns;
    if (std::isnan(times.first_tile + times.second_tile) || ctas < 1) return {unknown_number, unknown_number};
    const int followed = int(std::min(all, double(followed_tiles)));
    struct Cta {
        double takes, free;  ///< when it can take a tile, and when those it has are computed
        bool operator>(const Cta& other) const { return takes > other.takes; }
    };
    std::priority_queue<Cta, std::vector<Cta>, std::greater<>> waiting;
    for (std::int64_t i = 0; i < std::min(ctas, std::int64_t(followed)); ++i) waiting.push({0, 0});
    // Seconds of products that a ring holds.
    const auto in_ring = [](const ChainProduct& p, double tile) { return tile * p.stages / double(ceil_div(p.k, p.tile_k)); };
    const double first_ahead = in_ring(first, times.first_tile), second_ahead = in_ring(second, times.second_tile);
    // No tile is of a row, or of a chunk, of a higher number than its own.
    std::vector<double> ready(std::size_t(std::min(order.first.rows, followed)), 0), taken(std::size_t(std::min(order.chunks, followed)), 0);
    QueueRun run;
    double work = 0;
    for (int number = 0; number < followed; ++number) {
        const ChunkedOrder::Tile tile = order.at(number);
        Cta cta = waiting.top();
        waiting.pop();
        double rows_there = cta.takes;
        if (tile.of_second) {
            const int row_of_tiles = order.second.at(tile.index).row;
            const std::int64_t row = std::int64_t{row_of_tiles} * second.tile_m;
            const std::int64_t last = (std::min(row + second.tile_m, first.m) - 1) / first.tile_m;
            for (std::int64_t block = row / first.tile_m; block <= last; ++block) rows_there = std::max(rows_there, ready[std::size_t(block)]) + times.look;
            run.waiting += std::max(rows_there - std::max(cta.takes, cta.free), 0.0);
            cta.free = std::max(cta.free, rows_there) + times.second_tile;
            cta.takes = std::max(rows_there, cta.free - second_ahead);
            double& read = taken[std::size_t(row_of_tiles / order.second.chunk_rows)];
            read = std::max(read, cta.free + times.seen);
        } else {
            const int row_of_tiles = order.first.at(tile.index).row, chunk = row_of_tiles / order.first.chunk_rows;
            cta.free = std::max(cta.free, rows_there) + times.first_tile;
            if (chunk >= room_chunks) {
                const double place = std::max(cta.free, taken[std::size_t(chunk - room_chunks)]);
                run.waiting += place - cta.free;
                cta.free = place;
            }
            cta.takes = std::max(rows_there, cta.free - first_ahead);
            double& there = ready[std::size_t(row_of_tiles)];
            there = std::max(there, cta.free + times.seen);
        }
        work += tile.of_second ? times.second_tile : times.first_tile;
        run.seconds = std::max(run.seconds, cta.free);
        waiting.push(cta);
    }
    if (double(followed) < all) {
        const double whole = double(order.first.rows) * order.first.columns * times.first_tile + double(order.second.rows) * order.second.columns * times.second_tile;
        run.seconds *= whole / work, run.waiting *= whole / work;
    }
    return run;
}

}  // namespace rooftile
