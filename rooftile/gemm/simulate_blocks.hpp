// L2 block by block: the caches and operands that have no closed form, and the same LRU as simulate_lru, step by step. A
// hundred to a thousand times slower than simulate_lru.
#pragma once

#include <cstdint>

#include "rooftile/gemm/simulate_lru.hpp"

namespace rooftile {

/// One LRU of `capacity` bytes. Equal to simulate_lru in every figure where no cluster lags. Of an image a block of A is what a step takes of one pixel.
/// With `tiles`, also every tile's share of hits, in the order of the tile schedule.
GemmTraffic simulate_blocks(const TileSchedule& tile_schedule, std::int64_t capacity, std::vector<TileHits>* tiles = nullptr);

/// Belady's OPT: what is needed last goes first, and what comes need not stay. No replacement reads less in
/// the same order; nobody lags here. Blocks may be cut anywhere, since L2's lines are far smaller. C leaves
/// as soon as it is written.
GemmTraffic simulate_opt(const TileSchedule& tile_schedule, std::int64_t capacity);

/// L2 in two halves of `half_bytes`, an LRU each. One half of every block has its home in each of them;
/// clusters are strewn over both sides. A cluster asks the half on its side, which keeps a copy of all it
/// passes on; what has its home on the far side and is not there is asked for in the far half, which asks
/// DRAM and keeps it too. C is written to its home alone. So what both sides read stands in L2 twice, as on
/// A100 and H100, and C once.
GemmTraffic simulate_halves(const TileSchedule& tile_schedule, std::int64_t half_bytes);

/// Each of them throws RequestError as check() does, or where there are too many blocks to follow one by one.

}  // namespace rooftile
