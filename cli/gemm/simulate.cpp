#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <nlohmann/json.hpp>

#include "cli/gemm/verbs.hpp"
#include "cli/pictures.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/output.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/simulation_report.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view order_sets[] = {"all", "plan"};
constexpr std::string_view policies[] = {"lru", "opt"};
constexpr std::string_view layouts[] = {"half", "halves", "whole"};

struct SimulateFlags {
    const Given& given;
    OutputFlags output;
    std::string orders, policy = "lru", layout = "half";
};

L2Model l2_of(const SimulateFlags& flags, const Machine& machine, const GemmHardware& hw) {
    if (std::isnan(hw.l2_bytes))
        throw RequestError(
            fmt::format("l2.size of {} is unknown, and nothing can be simulated without; --set \"l2.size=50 "
                        "MB\" gives it",
                        machine.id));
    return {.policy = L2Policy(one_of("--policy", flags.policy, policies)),
            .layout = L2Layout(one_of("--l2", flags.layout, layouts)),
            .part_bytes = std::int64_t(hw.l2_bytes),
            .parts = int(machine.count("l2.partitions").value_or(1))};
}

/// The orders asked for: the planned one, all, or all the bands of a fixed height.
std::vector<TileOrder> orders_of(const SimulateFlags& flags, const GemmConfig& config) {
    const TileOrder planned{config.order, has_groups(config.order) ? config.group : 1};
    const bool fixed = flags.given.has("order") || flags.given.has("group");
    if (fixed && !flags.orders.empty() && flags.orders != "plan")
        throw RequestError(
            fmt::format("--orders {} and --order or --group exclude each other; give one", flags.orders));
    if (fixed || flags.orders == "plan") return {planned};
    if (!flags.orders.empty()) one_of("--orders", flags.orders, order_sets);
    std::vector<TileOrder> orders = all_orders();
    if (std::find(orders.begin(), orders.end(), planned) == orders.end()) orders.push_back(planned);
    return orders;
}

// Some seconds at most: LRU over one cache takes its time by tiles, everything else by requests.
void check_work(const Simulation& s, std::size_t orders) {
    const auto [rows, columns, products] = s.tile_schedule.cluster_tiles();
    const bool by_tiles = s.l2.policy == L2Policy::lru && s.l2.layout != L2Layout::halves;
    const double work = double(rows) * double(columns) * double(orders)
                        * (by_tiles ? 1.0 : double(s.tile_schedule.k_blocks()));
    constexpr double max_tiles = 1 << 23, max_steps = 1 << 25;
    if (work > (by_tiles ? max_tiles : max_steps))
        throw RequestError(fmt::format(
            "{:.3g} {} to simulate are too many; give one --order, a larger --tile, or a smaller problem",
            work, by_tiles ? "cluster tiles of all orders" : "k-steps of all orders"));
}

/// The plan's tile in the order that is asked for, in bands of rows that read least where nobody says how many.
void take_asked_order(const GemmRequest& asked, const GemmHardware& hw, GemmPlan& plan) {
    GemmConfig& config = plan.config;
    if (asked.order && *asked.order != config.order) {
        config.order = *asked.order, config.group = 1;
        const ScheduleTraffic traffic(hw, config, plan.problem);
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

Simulation simulation_of(const SimulateFlags& flags, const Machine& machine, const PlanSet& plans, const GemmRequest& asked) {
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
    s.l2 = l2_of(flags, machine, hw);
    s.notes = plans.notes;
    const auto tile_schedule = tile_schedule_of(hw, config, s.plan.problem, config.order, config.group);
    if (!tile_schedule)
        throw RequestError(
            fmt::format("sm.count of {} is unknown; --set sm.count=N gives it", machine.id));
    s.tile_schedule = *tile_schedule;
    s.dram_bound = known(dram_lower_bound_bytes(hw, s.plan.problem));
    s.l2_bound = known(l2_lower_bound_bytes(hw, config, s.plan.problem));
    const ScheduleTraffic closed(hw, config, s.plan.problem);
    const auto orders = orders_of(flags, config);
    check_work(s, orders.size());
    for (const TileOrder& order : orders) {
        TileSchedule one = s.tile_schedule;
        one.order = order.order, one.group = order.group;
        SimulatedOrder row{
            .order = order, .planned = false, .traffic = simulate(one, s.l2), .model_dram_bytes = {}, .energy = {}};
        row.planned =
            order.order == config.order && (!has_groups(order.order) || order.group == config.group);
        row.model_dram_bytes = known_count(closed.dram(order.order, order.group));
        if (flags.given.has("energy")) row.energy = energy_in(machine, plans.plans.front(), row.traffic);
        s.orders.push_back(row);
    }
    std::stable_sort(s.orders.begin(), s.orders.end(), [](const auto& x, const auto& y) {
        return x.traffic.dram_bytes() < y.traffic.dram_bytes();
    });
    return s;
}

/// Every tile of the plan's order, for its picture.
std::vector<TileHits> tiles_of(const SimulateFlags& flags, const Simulation& s) {
    if (s.l2.policy != L2Policy::lru || s.l2.layout == L2Layout::halves)
        throw RequestError(fmt::format("{} shows LRU over one cache; leave out --policy opt and --l2 halves", flags.given.has("svg") ? "--svg" : "--tiles"));
    constexpr double most = 65536;
    if (const double tiles = double(s.tile_schedule.tile_rows()) * double(s.tile_schedule.tile_columns()); tiles > most)
        throw RequestError(fmt::format("{} tiles are too many to draw; at most {} can be seen", tiles, most));
    std::vector<TileHits> tiles;
    simulate_lru(s.tile_schedule, s.l2.capacity(), &tiles);
    return tiles;
}

int simulate_gemm(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    SimulateFlags flags{.given = given, .output = output, .orders = given.text("orders")};
    if (given.has("policy")) flags.policy = given.text("policy");
    if (given.has("l2")) flags.layout = given.text("l2");
    const Problem problem = gemm_operation().problem(given);
    if (const auto& p = problem.own.as<GemmProblem>(); p.groups || p.batch > 1)
        throw RequestError(fmt::format("{} is not simulated: L2 is followed through the tiles of one product; give the sizes of one",
                                       p.groups ? given.name("groups") : given.name("batch")));
    check_picture_files(given);
    const bool draws = wants_pictures(given);
    const GemmRequest asked = gemm_request(given, 1);
    GemmRequest planned = asked;
    planned.order.reset(), planned.group.reset();  // pictures of two orders compare where their tiles are alike
    const Own request = Own::of(GemmAsk{.request = planned, .sample = 0, .orders = {}});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    std::optional<Progress> progress(std::in_place, "simulating");
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return progress.reset(), report_refusal(plans, context, output);
    const Simulation simulation = simulation_of(flags, *target.machine, plans, asked);
    progress.reset();
    Json document = simulation_document(context, simulation);
    if (draws || given.has("tiles")) {
        Json whole = document;
        whole["tiles"] = tiles_json(tiles_of(flags, simulation));
        if (draws) write_pictures(given, whole, invocation.command);
        if (given.has("tiles")) document = std::move(whole);
    }
    if (format == Format::text) {
        write_result(simulation_text(simulation, terminal_for(output)), output);
        return int(ExitCode::done);
    }
    write_result(format == Format::csv ? simulation_csv(document) : document_text(document, format), output);
    return int(ExitCode::done);
}

}  // namespace

void add_gemm_simulate(std::vector<Verb>& verbs) {
    const char* group = "Simulation";
    const Field own[] = {
        {"orders", "all|plan", "Every order (default), or the plan's; --order fixes another", group},
        {"policy", "lru|opt", "lru (default), or opt: the least any replacement could read", group},
        {"l2", "half|halves|whole",
         "One partition's bytes (default), two partitions followed, or all of L2 as one", group},
        {"energy", "", "Add the joules of a launch in each order, from the simulated DRAM traffic", group, FieldKind::on},
        {"tiles", "", "Add every tile's round and hits to the JSON", group, FieldKind::on}};
    std::vector<Field> fields(gemm_operation().fields().begin(), gemm_operation().fields().end());
    std::erase_if(fields, [](const Field& field) { return field.key == "sample" || field.key == "orders"; });
    verbs.push_back({.path = "simulate gemm",
                     .meaning = "What a plan's tile schedule reads from DRAM and finds in L2",
                     .fields = joined_fields({fields, target_fields(), own, picture_fields(true)}),
                     .documents = Documents::all,
                     .examples = "Examples:\n"
                                 "  rooftile simulate gemm --shape 8192x8192x8192 --machine h200-sxm\n"
                                 "  rooftile simulate gemm --shape 4096x14336x4096 --tile 128x256x64 --order "
                                 "hilbert --svg schedule.svg\n"
                                 "  rooftile simulate gemm --shape 2048x7168x2048 --policy opt --json\n"
                                 "  rooftile simulate gemm --shape 8192x8192x8192 --machine h200-sxm --energy\n",
                     .synopsis = std::string(gemm_operation().example()),
                     .run = simulate_gemm});
}

}  // namespace rooftile::cli
