#include "rooftile/gemm/orders.hpp"

#include <algorithm>

#include "rooftile/gemm/simulate_lru.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile {

double OrderFront::most_dram(double l2) const {
    double least = std::numeric_limits<double>::infinity();
    for (const ScoredOrder& order : *this)
        if (!(order.l2 > l2) && order.dram < least) least = order.dram;
    return least;
}

void OrderFront::offer(const ScoredOrder& order) {
    const auto as_good = [](const ScoredOrder& x, const ScoredOrder& y) {
        if (std::isnan(x.dram) != std::isnan(y.dram)) return std::isnan(y.dram);
        return !(x.l2 > y.l2) && !(x.dram > y.dram);
    };
    if (std::any_of(begin(), end(), [&](const ScoredOrder& other) { return as_good(other, order); })) return;
    const auto last = std::remove_if(orders_.begin(), orders_.begin() + count_,
                                     [&](const ScoredOrder& other) { return as_good(order, other); });
    count_ = int(last - orders_.begin());
    orders_[std::size_t(count_++)] = order;
}

namespace {

constexpr std::int64_t max_cluster_tiles = 1 << 16;  // a fraction of a millisecond each order
constexpr std::ptrdiff_t few_orders = 2;             // of those that ask as much of L2

double l2_of(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
             const OrderChoice& order) {
    return l2_step_cycles(hw, tile, problem, neighbours(problem, tile, order.order, order.group));
}

/// Simulates one order after the other and keeps those that may be the fastest.
class OrderTrials {
  public:
    /// `whole` says what a k-step asks of L2: of groups all of them, where `problem` is the batch that stands for them.
    OrderTrials(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                const GemmProblem& whole, const ScheduleTraffic& traffic)
        : hw_(hw), tile_(tile), problem_(problem), whole_(whole), least_(traffic.least()) {}

    void attempt(const OrderChoice& order) {
        const double l2 = l2_of(hw_, tile_, whole_, order), most = front_.most_dram(l2);
        if (!(least_ < most) || !first_time(order)) return;  // nothing moves less
        const auto tile_schedule = tile_schedule_of(hw_, tile_, problem_, order.order, order.group);
        if (!tile_schedule) return;
        if (clusters_ == 0) {
            clusters_ = tile_schedule->clusters;
            const double scheduled = products() * double(problem_.m) * double(problem_.n) * tile_schedule->operand_bytes;
            besides_ = max_known(0, problem_.beside_bytes() - scheduled);
        }
        const double limit = std::min((most - besides_) / products(), 9e18);
        const double moved =
            besides_
            + products()
                  * double(lru_dram_bytes(*tile_schedule, static_cast<std::int64_t>(hw_.l2_bytes),
                                          static_cast<std::int64_t>(limit)));
        if (moved < most) front_.offer({order, moved, l2});
    }
    /// Where the order is free: of every kind, bands that fill whole waves, and bands a little lower and higher than the best.
    void attempt_others() {
        for (const TileOrder& order : all_orders()) attempt({order.order, order.group});
        // As high as wide in clusters, or nearly: a divisor of those in flight.
        std::int64_t side = 1;
        for (std::int64_t i = 2; i * i <= clusters_; ++i)
            if (clusters_ % i == 0) side = i;
        attempt_bands(side), attempt_bands(clusters_ / side);
        for (std::size_t before = 0; before != tried_.size();) {
            before = tried_.size();
            const OrderFront best = front_;
            for (const ScoredOrder& scored : best)
                if (has_groups(scored.order.order))
                    attempt_bands(scored.order.group - 1), attempt_bands(scored.order.group + 1);
        }
    }
    const OrderFront& front() const { return front_; }

  private:
    void attempt_bands(std::int64_t height) {
        if (height < 1) return;
        attempt({Order::grouped, int(height)}), attempt({Order::serpentine, int(height)});
    }
    /// A product that L2 cannot hold leaves nothing there for the next.
    double products() const { return double(problem_.groups ? problem_.groups->with_rows() : problem_.batch); }
    bool first_time(const OrderChoice& order) {
        if (std::find(tried_.begin(), tried_.end(), order) != tried_.end()) return false;
        tried_.push_back(order);
        return true;
    }

    const GemmHardware& hw_;
    const GemmConfig& tile_;
    const GemmProblem &problem_, &whole_;
    double least_;
    std::int64_t clusters_ = 0;
    double besides_ = 0;  // bytes read in any order that the tile schedule does not hold: a bias, scales of blocks
    std::vector<OrderChoice> tried_;
    OrderFront front_;
};

OrderFront by_formula(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                      const ScheduleTraffic& traffic, const InnerSpace& inner) {
    OrderFront front;
    for (int i = 0; i < inner.order_count; ++i) {
        const OrderChoice& order = inner.orders[std::size_t(i)];
        front.offer({order, traffic.dram(order.order, order.group), l2_of(hw, tile, problem, order)});
    }
    return front;
}

/// Empty where nothing is simulated. `whole` as OrderTrials has it.
OrderFront by_simulation(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                         const GemmProblem& whole, const InnerSpace& inner, bool all) {
    // Of unlike counts none stands for the others: the formula's orders stay.
    if (problem.groups && problem.groups->alike().size() > 1) return {};
    if (problem.groups) {
        const GemmProblem plain = as_batch(problem);
        OrderFront front = by_simulation(hw, tile, plain, whole, inner, all);
        for (ScoredOrder& order : front)
            order.dram += problem.c_bytes() - plain.c_bytes() + problem.beside_bytes();
        return front;
    }
    const ScheduleTraffic traffic(hw, tile, problem);
    const auto [rows, columns, products] = cluster_grid(problem, tile);
    if (!(hw.l2_bytes >= 1) || !(traffic.least_of_one() > hw.l2_bytes) || rows > max_cluster_tiles / columns)
        return {};
    // Those that move least by formula first: what moves more is simulated in part.
    std::array<ScoredOrder, searched_orders.size()> orders{};
    const auto last = orders.begin() + inner.order_count;
    for (std::size_t i = 0; i < std::size_t(inner.order_count); ++i)
        orders[i] = {inner.orders[i], traffic.dram(inner.orders[i].order, inner.orders[i].group),
                     l2_of(hw, tile, whole, inner.orders[i])};
    std::stable_sort(orders.begin(), last, [](const auto& x, const auto& y) { return x.dram < y.dram; });
    OrderTrials trials(hw, tile, problem, whole, traffic);
    for (auto order = orders.begin(); order != last; ++order) {
        const auto alike = std::count_if(orders.begin(), order,
                                         [&](const ScoredOrder& before) { return before.l2 == order->l2; });
        if (all || alike < few_orders) trials.attempt(order->order);
    }
    const bool free = inner.order_count > 1
                      && inner.orders[0].order != inner.orders[std::size_t(inner.order_count) - 1].order;
    if (all && free) trials.attempt_others();
    return trials.front();
}

}  // namespace

OrderFront fastest_orders(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                          const InnerSpace& inner, Effort effort) {
    OrderFront front;
    if (effort != Effort::formula)
        front = by_simulation(hw, tile, problem, problem, inner, effort == Effort::all);
    return front.empty() ? by_formula(hw, tile, problem, ScheduleTraffic(hw, tile, problem), inner) : front;
}

}  // namespace rooftile
