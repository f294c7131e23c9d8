#include "rooftile/gemm/orders.hpp"

#include "rooftile/gemm/simulate_lru.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t max_cluster_tiles = 1 << 16;  // a fraction of a millisecond each order
// The formula's best that are simulated; of many tiles one, since each then takes a part of a millisecond.
constexpr std::size_t orders_simulated = 4;
constexpr std::int64_t many_cluster_tiles = 1 << 14;
// Of its DRAM traffic: what bands taken in turns must save over the best that all go the same way.
constexpr double min_saved_by_turns = 0.01;

/// Simulates one order after the other and keeps the best.
class OrderTrials {
  public:
    OrderTrials(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem)
        : hw_(hw), tile_(tile), problem_(problem) {}

    /// It must move less than `share` of the best so far.
    void attempt(const OrderChoice& order, double share = 1) {
        const auto tile_schedule = tile_schedule_of(hw_, tile_, problem_, order.order, order.group);
        if (!tile_schedule) return;
        const auto capacity = static_cast<std::int64_t>(hw_.l2_bytes);
        if (!best_) {
            clusters_ = tile_schedule->clusters;
            const double scheduled = products() * double(problem_.m) * double(problem_.n) * tile_schedule->operand_bytes;
            besides_ = max_known(0, problem_.beside_bytes() - scheduled);
            best_ = {order, besides_ + products() * double(lru_dram_bytes(*tile_schedule, capacity))};
            return;
        }
        const double most = best_->dram * share;
        const double moved = besides_ + products() * double(lru_dram_bytes(*tile_schedule, capacity, static_cast<std::int64_t>((most - besides_) / products())));
        if (moved < most) best_ = {order, moved};
    }
    /// Bands that a whole number of waves fills are as high as wide in clusters, or nearly: a divisor of those
    /// in flight. Each also taken in turns, where the next band begins with the B that is still there.
    void attempt_turns() {
        std::int64_t side = 1;
        for (std::int64_t i = 2; i * i <= clusters_; ++i)
            if (clusters_ % i == 0) side = i;
        const int low = int(side), high = int(clusters_ / side);
        attempt({Order::grouped, low});
        const OrderChoice bands = best_->order;
        attempt({Order::serpentine, low}, 1 - min_saved_by_turns);
        attempt({Order::serpentine, high}, 1 - min_saved_by_turns);
        if (bands.order != Order::grouped) return;
        attempt({Order::serpentine, bands.group}, 1 - min_saved_by_turns);
        if (bands.group > 1) attempt({Order::serpentine, bands.group - 1}, 1 - min_saved_by_turns);
    }
    const std::optional<ScoredOrder>& best() const { return best_; }

  private:
    /// A product that L2 cannot hold leaves nothing there for the next.
    double products() const { return double(problem_.groups ? problem_.groups->with_rows() : problem_.batch); }

    const GemmHardware& hw_;
    const GemmTile& tile_;
    const GemmProblem& problem_;
    std::int64_t clusters_ = 0;
    double besides_ = 0;  // bytes read in any order that the tile schedule does not hold: a bias, scales of blocks
    std::optional<ScoredOrder> best_;
};

}  // namespace

ScoredOrder order_by_formula(const ScheduleTraffic& traffic, const InnerSpace& inner) {
    ScoredOrder best{inner.orders[0], traffic.dram(inner.orders[0].order, inner.orders[0].group)};
    for (int i = 1; i < inner.order_count && best.dram > traffic.least(); ++i) {
        const OrderChoice& other = inner.orders[i];
        if (const double moved = traffic.dram(other.order, other.group); moved < best.dram)
            best = {other, moved};
    }
    return best;
}

std::optional<ScoredOrder> order_by_simulation(const GemmHardware& hw, const GemmTile& tile,
                                               const GemmProblem& problem, const InnerSpace& inner) {
    // Of unlike counts none stands for the others: the formula's order stays.
    if (problem.groups && problem.groups->alike().size() > 1) return std::nullopt;
    if (problem.groups) {
        const GemmProblem plain = as_batch(problem);
        auto best = order_by_simulation(hw, tile, plain, inner);
        if (best) best->dram += problem.c_bytes() - plain.c_bytes() + problem.beside_bytes();
        return best;
    }
    const ScheduleTraffic traffic(hw, tile, problem);
    const auto [rows, columns, products] = cluster_grid(problem, tile);
    if (!(hw.l2_bytes >= 1) || !(traffic.least_of_one() > hw.l2_bytes) || rows > max_cluster_tiles / columns)
        return std::nullopt;
    std::array<ScoredOrder, searched_orders.size()> orders{};
    const auto count = static_cast<std::size_t>(inner.order_count);
    for (std::size_t i = 0; i < count; ++i)
        orders[i] = {inner.orders[i], traffic.dram(inner.orders[i].order, inner.orders[i].group)};
    std::stable_sort(orders.begin(), orders.begin() + inner.order_count,
                     [](const auto& x, const auto& y) { return x.dram < y.dram; });
    OrderTrials trials(hw, tile, problem);
    // gemm_rules::simulated_orders
    const std::size_t tried = inner.exhaustive                      ? count
                              : rows * columns > many_cluster_tiles ? 1
                                                                    : orders_simulated;
    for (std::size_t i = 0; i < std::min(count, tried); ++i) trials.attempt(orders[i].order);
    const bool free = count > 1 && inner.orders[0].order != inner.orders[count - 1].order;
    if (free && trials.best()) trials.attempt_turns();
    return trials.best();
}

}  // namespace rooftile
