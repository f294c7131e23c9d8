// What each form of a chain moves between DRAM and the chip, by tensor: one L2 under LRU followed block by block through both
// products, what the first leaves there included [M32, M34].
#pragma once

#include <cstdint>

#include "rooftile/chain/plan.hpp"

namespace rooftile {

/// What one partition of L2 keeps, and how many there are (physics/l2_cache.hpp).
struct ChainL2 {
    std::int64_t partition_bytes = 0;
    int partitions = 1;
    ChainL2(std::int64_t bytes, int count = 1) : partition_bytes(bytes), partitions(count) {}  // NOLINT(google-explicit-constructor): one partition is its bytes
};

/// How much is followed. Beyond so many steps each takes several of K at once, so that about as many are left: what LRU keeps hardly depends on
/// how finely K is cut. Beyond so many tiles two parts are followed, and the rest is a straight line through them (ChainTraffic::parts).
struct ChainEffort {
    double steps = 1.5e6, tiles = 3e5;
    double times_l2 = 8, waves = 16;  ///< that half a part is at least
};

/// Two kernels, one after the other, from an L2 that holds nothing of the chain's but what a launch before left of H in its place.
ChainTraffic two_kernels_traffic(const ChainProblem& problem, const ChainProduct& first, const ChainProduct& second,
                                 const ChainL2& l2, const ChainEffort& effort = {});
/// One kernel that takes `chunk_rows` rows after the other through both products; H has the room of `room_chunks` of them, used in turns.
ChainTraffic persistent_traffic(const ChainProblem& problem, const ChainProduct& first, const ChainProduct& second,
                                std::int64_t chunk_rows, int room_chunks, const ChainL2& l2, const ChainEffort& effort = {});
/// One kernel whose `ctas` each have rows of X and Y and stream W1 and W2; no H.
ChainTraffic on_chip_traffic(const ChainProblem& problem, const ChainTile& tile, std::int64_t ctas, const ChainL2& l2, const ChainEffort& effort = {});


}  // namespace rooftile
