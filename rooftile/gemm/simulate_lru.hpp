// L2 under LRU, exactly and fast: what a block-by-block simulation would count, in time that does not grow
// with K.
//
// LRU over blocks of any size keeps the longest prefix of the recency list that fits, so a block hits where
// the distinct bytes touched since its last use, its own included, are no more than the capacity. Take the
// block at position t of K of a tile row (or column) X, used in round r and last in round r0. Since then
//   at later positions of K:    the lines that rounds r0 .. r-1 used    -> older
//   at earlier positions:       the lines that rounds r0+1 .. r used    -> newer
//   at t itself:                the lines used since X in the tile schedule, X included -> same
//   and of C:                   the tiles of rounds r0 .. r-1
// each summed in bytes of one k. The distance is then linear in t,
//   older (K - P(t+1)) + newer P(t) + same w(t) + C,      P(t) = k before position t, w(t) = k at it
// and the hits of X in a round are those t where it stays within the capacity. Tests hold it to a brute-force
// LRU, byte for byte.
//
// Late clusters ask for what they share with the others when these are skew x (steps so far) ahead. What the
// round reads in that time must fit, or they read it again. This much is not exact: it is meant for clusters
// less than a tile behind and an L2 that keeps little from round to round. There it is within 1.2 % of
// simulate_blocks in the mean of random tile schedules, and 0.2 % over the problems of bench/suites/traffic.toml.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "rooftile/gemm/tile_schedule.hpp"

namespace rooftile {

/// How one tile of C met L2: shares of its k-steps whose A, whose B was there.
struct TileHits {
    std::int64_t row = 0, column = 0;  ///< in tiles
    std::int64_t round = 0;
    double a = 0, b = 0;
};

/// The traffic of `tile_schedule` over one LRU of `capacity` bytes that holds A, B and C. With `tiles`, also every
/// tile's share of hits, in the order of the tile schedule. Throws RequestError as check() does.
GemmTraffic simulate_lru(const TileSchedule& tile_schedule, std::int64_t capacity,
                         std::vector<TileHits>* tiles = nullptr);

/// The DRAM bytes of the same alone, two to three times as fast. Where they come to more than `most` it
/// stops, with a number above `most`: who looks for the least traffic need not simulate what is worse to its end.
std::int64_t lru_dram_bytes(const TileSchedule& tile_schedule, std::int64_t capacity,
                            std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace rooftile
