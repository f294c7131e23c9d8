#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <nlohmann/json.hpp>

#include "cli/gemm/verbs.hpp"
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
    std::string orders, policy = "lru", layout = "half", svg;
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

Simulation simulation_of(const SimulateFlags& flags, const Machine& machine, const PlanSet& plans) {
    Simulation s;
    s.machine_id = plans.machine_id;
    s.machine_name = plans.machine_name;
    s.plan = plans.plans.front().own.as<GemmPlan>();
    const GemmConfig& config = s.plan.config;
    // Traffic asks for no rate: any family's numbers do.
    const GemmHardware hw = gemm_hardware(machine, "wgmma", s.plan.problem.a_type, s.unknown);
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
            .order = order, .planned = false, .traffic = simulate(one, s.l2), .model_dram_bytes = {}};
        row.planned =
            order.order == config.order && (!has_groups(order.order) || order.group == config.group);
        row.model_dram_bytes = known_count(closed.dram(order.order, order.group));
        s.orders.push_back(row);
    }
    std::stable_sort(s.orders.begin(), s.orders.end(), [](const auto& x, const auto& y) {
        return x.traffic.dram_bytes() < y.traffic.dram_bytes();
    });
    return s;
}

void write_svg(const SimulateFlags& flags, const Simulation& s) {
    if (s.l2.policy != L2Policy::lru || s.l2.layout == L2Layout::halves)
        throw RequestError("--svg draws LRU over one cache; leave out --policy opt and --l2 halves");
    std::vector<TileHits> tiles;
    const GemmTraffic traffic = simulate_lru(s.tile_schedule, s.l2.capacity(), &tiles);
    OutputFlags output;
    output.file = flags.svg;
    output.flag = "--svg";
    write_result(tile_schedule_svg(s.plan.problem, s.tile_schedule, traffic, tiles), output);
}

int simulate_gemm(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    SimulateFlags flags{.given = given, .output = output, .orders = given.text("orders"), .svg = given.text("svg")};
    if (given.has("policy")) flags.policy = given.text("policy");
    if (given.has("l2")) flags.layout = given.text("l2");
    const Problem problem = gemm_operation().problem(given);
    if (const auto& p = problem.own.as<GemmProblem>(); p.groups || p.batch > 1)
        throw RequestError(fmt::format("{} is not simulated: L2 is followed through the tiles of one product; give the sizes of one",
                                       p.groups ? given.name("groups") : given.name("batch")));
    const Own request = Own::of(GemmAsk{.request = gemm_request(given, 1), .sample = 0, .orders = {}});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    std::optional<Progress> progress(std::in_place, "simulating");
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return progress.reset(), report_refusal(plans, context, output);
    const Simulation simulation = simulation_of(flags, *target.machine, plans);
    progress.reset();
    if (!flags.svg.empty()) write_svg(flags, simulation);
    if (format == Format::text) {
        write_result(simulation_text(simulation, terminal_for(output)), output);
        return int(ExitCode::done);
    }
    const Json document = simulation_document(context, simulation);
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
        {"svg", "FILE", "Draw the plan's tile schedule, coloured by hits, into FILE", group}};
    std::vector<Field> fields(gemm_operation().fields().begin(), gemm_operation().fields().end());
    std::erase_if(fields, [](const Field& field) { return field.key == "sample" || field.key == "orders"; });
    verbs.push_back({.path = "simulate gemm",
                     .meaning = "What a plan's tile schedule reads from DRAM and finds in L2",
                     .fields = joined_fields({fields, target_fields(), own}),
                     .documents = Documents::all,
                     .examples = "Examples:\n"
                                 "  rooftile simulate gemm --shape 8192x8192x8192 --machine h200-sxm\n"
                                 "  rooftile simulate gemm --shape 4096x14336x4096 --tile 128x256x64 --order "
                                 "hilbert --svg schedule.svg\n"
                                 "  rooftile simulate gemm --shape 2048x7168x2048 --policy opt --json\n",
                     .synopsis = std::string(gemm_operation().example()),
                     .run = simulate_gemm});
}

}  // namespace rooftile::cli
