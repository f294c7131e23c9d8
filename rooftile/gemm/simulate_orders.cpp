#include "rooftile/gemm/simulate_orders.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/simulate_blocks.hpp"

namespace rooftile {

std::string_view name_of(L2Policy policy) { return policy == L2Policy::lru ? "lru" : "opt"; }

std::string_view name_of(L2Layout layout) {
    return layout == L2Layout::half ? "half" : layout == L2Layout::halves ? "halves" : "whole";
}

GemmTraffic simulate(const TileSchedule& tile_schedule, const L2Model& l2, std::vector<TileHits>* tiles) {
    if (tile_schedule.image && l2.layout != L2Layout::halves && l2.policy == L2Policy::lru) return simulate_blocks(tile_schedule, l2.capacity(), tiles);
    if (l2.layout != L2Layout::halves)
        return l2.policy == L2Policy::lru ? simulate_lru(tile_schedule, l2.capacity(), tiles)
                                          : simulate_opt(tile_schedule, l2.capacity());
    if (l2.policy == L2Policy::opt)
        throw RequestError("policy opt over two halves is not defined; take layout half or whole");
    if (l2.parts != 2)
        throw RequestError(fmt::format("an L2 of {} partition{} has no two halves; take layout half or whole",
                                       l2.parts, l2.parts == 1 ? "" : "s"));
    return simulate_halves(tile_schedule, l2.part_bytes);
}

std::vector<TileOrder> all_orders() {
    std::vector<TileOrder> orders{{Order::row, 1}, {Order::column, 1}};
    for (Order order : {Order::grouped, Order::serpentine})
        for (int group : {2, 3, 4, 6, 8, 10, 11, 12, 14, 16}) orders.push_back({order, group});
    orders.push_back({Order::morton, 1});
    orders.push_back({Order::hilbert, 1});
    return orders;
}

}  // namespace rooftile
