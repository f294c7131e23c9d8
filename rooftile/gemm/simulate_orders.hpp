// One tiling taken in many orders over a given model of L2.
#pragma once

#include <string_view>
#include <vector>

#include "rooftile/gemm/simulate_lru.hpp"

namespace rooftile {

/// What L2 drops to make room: the line used longest ago, as GPUs do, or the one needed last, as none can.
enum class L2Policy : std::uint8_t { lru, opt };

/// What stands for an L2 of several partitions.
enum class L2Layout : std::uint8_t {
    half,    ///< one partition's bytes: each keeps what its SMs read, and all read much the same
    halves,  ///< two partitions followed each by itself, as simulate_halves
    whole,   ///< all bytes as one: nothing stands in two partitions
};
std::string_view name_of(L2Policy policy);
std::string_view name_of(L2Layout layout);

struct L2Model {
    L2Policy policy = L2Policy::lru;
    L2Layout layout = L2Layout::half;
    std::int64_t part_bytes = 0;  ///< of one partition
    int parts = 1;

    std::int64_t capacity() const { return layout == L2Layout::half ? part_bytes : part_bytes * parts; }
};

/// Throws RequestError: OPT over halves, or halves of what has not two partitions; else as check(tile schedule).
/// `tiles`: of LRU over one cache also every tile's share of hits, in the planned order.
GemmTraffic simulate(const TileSchedule& tile_schedule, const L2Model& l2, std::vector<TileHits>* tiles = nullptr);

struct TileOrder {
    Order order;
    int group;  ///< 1 where the order has none
    friend bool operator==(const TileOrder&, const TileOrder&) = default;
};
inline bool has_groups(Order order) { return order == Order::grouped || order == Order::serpentine; }

/// Every kind of order: row, column, bands of several heights taken forth and in turns, morton, hilbert.
std::vector<TileOrder> all_orders();

}  // namespace rooftile
