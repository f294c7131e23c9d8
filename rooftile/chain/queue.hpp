// One kernel's queue of tiles of both products, run in its order on as many CTAs as there are SMs: how long it takes and how much of it is
// waiting for rows of H.
#pragma once

#include <cstdint>

#include "kernels/pipeline/chunked_order.hpp"
#include "rooftile/chain/plan.hpp"

namespace rooftile {

/// Products in chunks of rows; of one chunk where that is all of them. A chunk is whole tiles of both.
ChunkedOrder queue_order(const ChainProduct& first, const ChainProduct& second, const RowChunks& chunks);

/// Seconds.
struct QueueTimes {
    double first_tile = 0, second_tile = 0;
    double seen = 0;  ///< from where a tile is counted to where another CTA's copies of it may begin
    double look = 0;  ///< at the counter of a row of tiles, before a tile of the second product
};
struct QueueRun {
    double seconds = 0;  ///< until the last tile is done; NaN: unknown
    double waiting = 0;  ///< of all CTAs together, for rows that are not there yet
};
/// A CTA takes a tile of the queue as soon as its ring has room for it, waits for the tile's rows of H, and computes it behind those it took
/// before. A chunk of H is stored where there is room: `room_chunks` behind another, once that has been read. Of more than `followed_tiles`
/// tiles the first ones tell how long the others take.
QueueRun run_queue(const ChainProduct& first, const ChainProduct& second, const ChunkedOrder& order, int room_chunks, const QueueTimes& times,
                   std::int64_t ctas);
inline constexpr int followed_tiles = 8000;

}  // namespace rooftile
