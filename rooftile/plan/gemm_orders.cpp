#include "rooftile/plan/gemm_orders.hpp"

#include "rooftile/simulate/gemm_lru.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t most_cluster_tiles = 1 << 15;  // a fraction of a millisecond each order
constexpr std::size_t orders_simulated = 4;

}  // namespace

WalkedOrder order_by_formula(const WalkTraffic& traffic, const InnerSpace& inner) {
    WalkedOrder best{inner.orders[0], traffic.dram(inner.orders[0].order, inner.orders[0].group)};
    for (int i = 1; i < inner.order_count && best.dram > traffic.least(); ++i) {
        const OrderChoice& other = inner.orders[i];
        if (const double moved = traffic.dram(other.order, other.group); moved < best.dram)
            best = {other, moved};
    }
    return best;
}

std::optional<WalkedOrder> order_by_simulation(const GemmHardware& hw, const GemmTile& tile,
                                               const GemmProblem& problem, const InnerSpace& inner) {
    const WalkTraffic traffic(hw, tile, problem);
    const auto [rows, columns] = cluster_grid(problem, tile);
    if (!(hw.l2_bytes >= 1) || !(traffic.least() > hw.l2_bytes) || rows > most_cluster_tiles / columns)
        return std::nullopt;
    std::array<WalkedOrder, searched_orders.size()> orders{};
    const auto count = static_cast<std::size_t>(inner.order_count);
    for (std::size_t i = 0; i < count; ++i)
        orders[i] = {inner.orders[i], traffic.dram(inner.orders[i].order, inner.orders[i].group)};
    std::stable_sort(orders.begin(), orders.begin() + inner.order_count,
                     [](const auto& x, const auto& y) { return x.dram < y.dram; });
    std::optional<WalkedOrder> best;
    for (std::size_t i = 0; i < std::min(count, orders_simulated); ++i) {
        const auto walk = gemm_walk(hw, tile, problem, orders[i].order.order, orders[i].order.group);
        if (!walk) return std::nullopt;
        const auto capacity = static_cast<std::int64_t>(hw.l2_bytes);
        const double moved =
            double(best ? lru_dram_bytes(*walk, capacity, static_cast<std::int64_t>(best->dram))
                        : lru_dram_bytes(*walk, capacity));
        if (!best || moved < best->dram) best = {orders[i].order, moved};
    }
    return best;
}

}  // namespace rooftile
