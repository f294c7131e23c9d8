#include "rooftile/gemm/simulation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "rooftile/core/derivation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/gemm/simulation_report.hpp"

namespace rooftile {
namespace {

L2Model l2_of(const SimulationAsk& ask, const Machine& machine, const GemmHardware& hw) {
    if (std::isnan(hw.l2_bytes))
        throw RequestError(
            fmt::format("l2.size of {} is unknown, and nothing can be simulated without; --set \"l2.size=50 "
                        "MB\" gives it",
                        machine.id));
    return {.policy = ask.policy == "opt" ? L2Policy::opt : L2Policy::lru,
            .layout = ask.layout == "half" ? L2Layout::half : ask.layout == "halves" ? L2Layout::halves : L2Layout::whole,
            .part_bytes = std::int64_t(hw.l2_bytes),
            .parts = int(machine.count("l2.partitions").value_or(1))};
}

/// The orders asked for: the planned one, or all.
std::vector<TileOrder> orders_of(const SimulationAsk& ask, const GemmConfig& config) {
    const TileOrder planned{config.order, has_groups(config.order) ? config.group : 1};
    if (ask.orders == "plan") return {planned};
    std::vector<TileOrder> orders = all_orders();
    if (std::find(orders.begin(), orders.end(), planned) == orders.end()) orders.push_back(planned);
    return orders;
}

// Some seconds at most: LRU over one cache takes its time by tiles, that of an image by pixels, everything else by requests.
void check_work(const Simulation& s, std::size_t orders) {
    const auto [rows, columns, products] = s.tile_schedule.cluster_tiles();
    const bool by_tiles = s.l2.policy == L2Policy::lru && s.l2.layout != L2Layout::halves && !s.tile_schedule.image;
    const double k_blocks = double(s.tile_schedule.k_blocks());
    const double work = double(orders) * double(columns)
                        * (s.tile_schedule.image ? double(s.tile_schedule.m) * k_blocks : by_tiles ? double(rows) : double(rows) * k_blocks);
    constexpr double max_tiles = 1 << 23, max_steps = 1 << 25, max_pixels = 1 << 27;
    if (work > (s.tile_schedule.image ? max_pixels : by_tiles ? max_tiles : max_steps))
        throw RequestError(fmt::format("{:.3g} {} to simulate are too many; give one --order, a larger --tile, or a smaller problem", work,
                                       s.tile_schedule.image ? "requests for pixels" : by_tiles ? "cluster tiles of all orders" : "k-steps of all orders"));
}

/// The plan's tile in the order that is asked for, in bands of rows that read least where nobody says how many.
void take_asked_order(const GemmRequest& asked, const GemmHardware& hw, GemmPlan& plan) {
    GemmConfig& config = plan.config;
    if (asked.order && *asked.order != config.order) {
        config.order = *asked.order, config.group = 1;
        const ScheduleTraffic traffic(hw, config, multiplied(plan));
        double least = std::numeric_limits<double>::infinity();
        for (const OrderChoice& choice : searched_orders)
            if (has_groups(config.order) && has_groups(choice.order))
                if (const double bytes = traffic.dram(config.order, choice.group); config.group == 1 || bytes < least) config.group = choice.group, least = bytes;
    }
    if (asked.group && has_groups(config.order)) config.group = *asked.group;
}

/// Of a launch of the plan whose DRAM traffic is the simulated one; its time is the predicted one.
Energy energy_in(const Machine& machine, const Plan& plan, const GemmTraffic& traffic) {
    Demand demand = gemm_operation().demand(machine, plan);
    demand.dram_bytes = double(traffic.dram_bytes());
    return energy_of(demand, machine, gemm_operation().predictor(machine, {&plan, 1})(machine).front());
}

Simulation simulation_of(const SimulationAsk& ask, const Machine& machine, const PlanSet& plans, const GemmRequest& asked) {
    Simulation s;
    s.machine_id = plans.machine_id;
    s.machine_name = plans.machine_name;
    s.plan = plans.plans.front().own.as<GemmPlan>();
    // Traffic asks for no rate: any family's numbers do.
    const GemmHardware hw = gemm_hardware(machine, "wgmma", s.plan.problem.a_type, s.unknown);
    take_asked_order(asked, hw, s.plan);
    const GemmConfig& config = s.plan.config;
    std::erase_if(s.unknown, [](const std::string& key) {
        return !key.starts_with("l2.") && !key.starts_with("sm.") && !key.starts_with("shared.");
    });
    s.l2 = l2_of(ask, machine, hw);
    s.notes = plans.notes;
    const GemmProblem problem = multiplied(s.plan);
    const auto tile_schedule = tile_schedule_of(hw, config, problem, config.order, config.group);
    if (!tile_schedule)
        throw RequestError(
            fmt::format("sm.count of {} is unknown; --set sm.count=N gives it", machine.id));
    s.tile_schedule = *tile_schedule;
    s.dram_bound = known(dram_lower_bound_bytes(hw, problem));
    s.l2_bound = known(l2_lower_bound_bytes(hw, config, problem));
    const ScheduleTraffic closed(hw, config, problem);
    const auto orders = orders_of(ask, config);
    check_work(s, orders.size());
    for (const TileOrder& order : orders) {
        TileSchedule one = s.tile_schedule;
        one.order = order.order, one.group = order.group;
        SimulatedOrder row{
            .order = order, .planned = false, .traffic = simulate(one, s.l2), .model_dram_bytes = {}, .energy = {}};
        row.planned =
            order.order == config.order && (!has_groups(order.order) || order.group == config.group);
        row.model_dram_bytes = known_count(closed.dram(order.order, order.group));
        if (ask.energy) row.energy = energy_in(machine, plans.plans.front(), row.traffic);
        s.orders.push_back(row);
    }
    std::stable_sort(s.orders.begin(), s.orders.end(), [](const auto& x, const auto& y) {
        return x.traffic.dram_bytes() < y.traffic.dram_bytes();
    });
    return s;
}

class GemmSimulated final : public SimulatedPlan {
  public:
    explicit GemmSimulated(Simulation simulation) : s_(std::move(simulation)) {}
    Json document(const DocumentContext& context) const override { return simulation_document(context, s_); }
    Json tiles() const override {
        if (s_.l2.policy != L2Policy::lru || s_.l2.layout == L2Layout::halves)
            throw RequestError("--svg, --html and --tiles show LRU over one cache; leave out --policy opt and --l2 halves");
        constexpr double most = 65536;
        if (const double tiles = double(s_.tile_schedule.tile_rows()) * double(s_.tile_schedule.tile_columns()); tiles > most)
            throw RequestError(fmt::format("{} tiles are too many to draw; at most {} can be seen", tiles, most));
        std::vector<TileHits> tiles;
        simulate(s_.tile_schedule, s_.l2, &tiles);
        return tiles_json(tiles);
    }
    std::string text(const Terminal& terminal) const override { return simulation_body(s_, terminal); }
    SimulatedBytes planned() const override {
        const auto row = std::ranges::find(s_.orders, true, &SimulatedOrder::planned);
        const GemmTraffic& t = (row == s_.orders.end() ? s_.orders.front() : *row).traffic;
        return {t.l2_read_bytes + t.l2_write_bytes + t.dram_operand_bytes, t.dram_bytes(), s_.dram_bound};
    }

  private:
    Simulation s_;
};

class GemmSimulates final : public Simulates {
  public:
    std::string_view examples() const override {
        return "Examples:\n"
               "  rooftile simulate gemm --shape 8192x8192x8192 --machine h200-sxm\n"
               "  rooftile simulate gemm --shape 4096x14336x4096 --tile 128x256x64 --order "
               "hilbert --svg schedule.svg\n"
               "  rooftile simulate gemm --shape 2048x7168x2048 --policy opt --json\n"
               "  rooftile simulate gemm --shape 8192x8192x8192 --machine h200-sxm --energy\n";
    }
    void check(const Problem& problem, const Given& given) const override {
        if (const auto& p = problem.own.as<GemmProblem>(); p.groups || p.batch > 1)
            throw RequestError(fmt::format("{} is not simulated: L2 is followed through the tiles of one product; give the sizes of one",
                                           p.groups ? given.name("groups") : given.name("batch")));
    }
    Own request(const Given& given) const override {
        GemmRequest planned = gemm_request(given, 1);
        planned.order.reset(), planned.group.reset();
        return Own::of(GemmAsk{.request = planned, .sample = 0, .orders = {}});
    }
    std::unique_ptr<SimulatedPlan> simulate(const Machine& machine, const PlanSet& plans, const Given& given, const SimulationAsk& ask) const override {
        return std::make_unique<GemmSimulated>(simulation_of(ask, machine, plans, gemm_request(given, 1)));
    }
};

}  // namespace

const Simulates& gemm_simulates() {
    static const GemmSimulates simulates;
    return simulates;
}

}  // namespace rooftile
