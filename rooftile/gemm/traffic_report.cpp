#include "rooftile/gemm/traffic_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile {
namespace {

/// Traffic asks for no rate: any family's numbers do.
GemmHardware traffic_hardware(const Machine& machine, const GemmProblem& problem) {
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine, "wgmma", problem.a_type, unknown);
    if (std::isnan(hw.l2_bytes) || std::isnan(hw.sms))
        throw RequestError(
            fmt::format("l2.size or sm.count of {} is unknown: nothing can be simulated", machine.id));
    return hw;
}

double simulated_bytes(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem,
                       const TileOrder& order) {
    const auto tile_schedule = tile_schedule_of(hw, tile, problem, order.order, order.group);
    if (!tile_schedule) throw RequestError("a cluster of that size stands on no SM of the machine");
    return double(lru_dram_bytes(*tile_schedule, std::int64_t(hw.l2_bytes)));
}

TileOrder order_of(const GemmConfig& config) {
    return {config.order, has_groups(config.order) ? config.group : 1};
}

TrafficPair pair_of(const RecordedRow& row, const Machine& machine) {
    const GemmHardware hw = traffic_hardware(machine, row.problem);
    const GemmTile tile = candidate_of(row.config).tile;
    const GemmProblem& p = row.problem;
    TrafficPair pair;
    // First: it refuses a configuration that none of ours can be.
    if (const auto bytes = plan_again(machine, row).prediction.dram_bytes) pair.predicted = double(*bytes);
    pair.problem = p, pair.config = row.config;
    pair.counted = *row.dram_bytes, pair.counted_l2 = row.l2_bytes;
    const double operands =
        double(p.m) * double(p.k) * bytes_of(p.a_type) + double(p.n) * double(p.k) * bytes_of(p.b_type);
    pair.large = operands >= 2 * hw.l2_bytes * hw.l2_parts;
    pair.simulated = simulated_bytes(hw, tile, p, order_of(row.config));
    pair.bound = known(dram_lower_bound_bytes(hw, p));
    pair.l2_bound = known(l2_lower_bound_bytes(hw, tile, p));
    return pair;
}

TrafficErrors errors_of(const std::vector<TrafficPair>& pairs, bool large, double limit) {
    TrafficErrors e;
    e.limit = limit;
    for (const TrafficPair& pair : pairs) {
        if (pair.large != large) continue;
        const double error = std::abs(pair.error()), simulation = std::abs(pair.simulation_error());
        ++e.pairs;
        e.within += error <= limit;
        e.mean += error, e.simulation_mean += simulation;
        e.worst = std::max(e.worst, error);
        e.simulation_worst = std::max(e.simulation_worst, simulation);
    }
    if (e.pairs > 0) e.mean /= e.pairs, e.simulation_mean /= e.pairs;
    return e;
}

/// The planner's own choice for the tiling of the problem's first row.
ChosenOrder chosen_order(const RecordedRow& row, const Machine& machine,
                         const std::vector<TrafficPair>& pairs) {
    const GemmHardware hw = traffic_hardware(machine, row.problem);
    const GemmTile tile = candidate_of(row.config).tile;
    ChosenOrder out;
    out.problem = row.problem;
    const auto outcome = [&] {
        GemmRequest request;
        request.tile_m = tile.tile_m, request.tile_n = tile.tile_n, request.tile_k = tile.tile_k;
        request.cluster_m = tile.cluster_m, request.cluster_n = tile.cluster_n;
        request.split_k = tile.split_k, request.ctas_per_sm = tile.ctas_per_sm;
        request.stages = row.config.stages;
        request.consumer_warpgroups = row.config.consumer_warpgroups;
        request.schedule = row.config.schedule;
        request.swap_ab = row.config.swap_ab;
        request.top = 1;
        return derive(machine, row.problem, request);
    }();
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) throw RequestError(infeasible->message);
    out.chosen = out.best = order_of(std::get<Plans>(outcome).plans.front().config);
    out.chosen_bytes = out.best_bytes = simulated_bytes(hw, tile, row.problem, out.chosen);
    for (const TileOrder& order : all_orders()) {
        const double bytes = simulated_bytes(hw, tile, row.problem, order);
        if (bytes < out.best_bytes) out.best = order, out.best_bytes = bytes;
    }
    for (const TrafficPair& pair : pairs) {
        if (pair.problem != row.problem) continue;
        if (order_of(pair.config) == out.chosen) out.counted = pair.counted;
        out.counted_best = std::min(out.counted_best.value_or(pair.counted), pair.counted);
    }
    return out;
}

std::string pair_name(const TrafficPair& pair) {
    return shape_text(pair.problem) + " " + order_text(pair.config.order, pair.config.group);
}

std::string bytes_text(const std::optional<double>& bytes) { return bytes ? scaled_text(*bytes, "B") : "?"; }

std::string pairs_table(const TrafficReport& report, const Terminal& terminal) {
    Table table({{"M x N x K", Table::Align::left},
                 {"order", Table::Align::left},
                 {"tile", Table::Align::left, 5},
                 {"counted"},
                 {"predicted"},
                 {"simulated", Table::Align::right, 2},
                 {"bound", Table::Align::right, 3},
                 {"predicted off"},
                 {"simulated off", Table::Align::right, 1},
                 {"", Table::Align::left, 4}});
    for (const TrafficPair& p : report.pairs) {
        const double limit = p.large ? large_traffic_limit : small_traffic_limit;
        const Tone tone = std::abs(p.error()) > limit ? Tone::bad : Tone::plain;
        table.row({{shape_text(p.problem)},
                   {order_text(p.config.order, p.config.group)},
                   {fmt::format("{}x{} {}x{}", p.config.tile_m, p.config.tile_n, p.config.cluster_m,
                                p.config.cluster_n)},
                   {bytes_text(p.counted)},
                   {bytes_text(p.predicted)},
                   {bytes_text(p.simulated)},
                   {bytes_text(p.bound)},
                   {signed_percent(p.error()), tone},
                   {signed_percent(p.simulation_error())},
                   {p.large ? "" : "less than 2 L2"}});
    }
    return table.text(terminal);
}

std::string orders_table(const TrafficReport& report, const Terminal& terminal) {
    Table table({{"M x N x K", Table::Align::left},
                 {"chosen", Table::Align::left},
                 {"simulated"},
                 {"best of all", Table::Align::left},
                 {"simulated"},
                 {"chosen, counted", Table::Align::right, 1},
                 {"best, counted", Table::Align::right, 1}});
    for (const ChosenOrder& o : report.orders)
        table.row({{shape_text(o.problem)},
                   {order_text(o.chosen.order, o.chosen.group)},
                   {bytes_text(o.chosen_bytes)},
                   {order_text(o.best.order, o.best.group)},
                   {bytes_text(o.best_bytes)},
                   {bytes_text(o.counted)},
                   {bytes_text(o.counted_best)}});
    return table.text(terminal);
}

std::string errors_text(const TrafficErrors& e, const char* which) {
    if (e.pairs == 0) return fmt::format("{}: none counted\n", which);
    return fmt::format(
        "{}: {} of {} within {}; predicted off by {} in the mean, {} at worst; simulated {} and {}\n", which,
        e.within, e.pairs, percent_text(e.limit), percent_text(e.mean), percent_text(e.worst),
        percent_text(e.simulation_mean), percent_text(e.simulation_worst));
}

}  // namespace

TrafficReport traffic_report(const RecordedRun& run, const Machine& machine) {
    TrafficReport report{.machine_id = run.machine_id,
                         .gpu = run.gpu,
                         .driver = run.driver,
                         .date = run.date,
                         .pairs = {},
                         .large = {},
                         .small = {},
                         .orders = {},
                         .uncounted = 0};
    for (const RecordedRow& row : run.rows) {
        if (row.dram_bytes && *row.dram_bytes > 0) report.pairs.push_back(pair_of(row, machine));
        else ++report.uncounted;
    }
    for (const RecordedRow& row : run.rows) {
        const auto same = [&](const ChosenOrder& o) { return o.problem == row.problem; };
        if (std::none_of(report.orders.begin(), report.orders.end(), same))
            report.orders.push_back(chosen_order(row, machine, report.pairs));
    }
    report.large = errors_of(report.pairs, true, large_traffic_limit);
    report.small = errors_of(report.pairs, false, small_traffic_limit);
    return report;
}

std::string traffic_text(const TrafficReport& report, const Terminal& terminal) {
    std::string out = fmt::format("{}, driver {}, {}: bytes to and from DRAM of one launch, L2 cold\n\n",
                                  displayable(report.gpu.empty() ? report.machine_id : report.gpu),
                                  displayable(report.driver), displayable(report.date.substr(0, 10)));
    out += pairs_table(report, terminal) + "\n" + orders_table(report, terminal) + "\n";
    out += errors_text(report.large, "A and B of 2 x L2 or more");
    out += errors_text(report.small, "smaller ones");
    if (report.uncounted > 0) out += fmt::format("{} rows were not counted\n", report.uncounted);
    const auto missed = missed_traffic_bars(report);
    if (missed.empty()) return out + "every bar holds\n";
    for (const std::string& line : missed)
        out += "missed: " + wrapped(displayable(line, terminal.utf8), terminal.prose() - 8, 8) + "\n";
    return out;
}

std::vector<std::string> missed_traffic_bars(const TrafficReport& report) {
    std::vector<std::string> missed;
    if (report.large.pairs < min_large_pairs)
        missed.push_back(fmt::format("{} pairs with A and B of 2 x L2 or more; wanted {}", report.large.pairs,
                                     min_large_pairs));
    for (const TrafficPair& p : report.pairs) {
        const double limit = p.large ? large_traffic_limit : small_traffic_limit;
        if (!(std::abs(p.error()) <= limit))
            missed.push_back(fmt::format("{}: {} predicted, {} counted: {}; wanted within {}", pair_name(p),
                                         bytes_text(p.predicted), bytes_text(p.counted),
                                         signed_percent(p.error()), percent_text(limit)));
        if (p.bound && p.counted < *p.bound)
            missed.push_back(fmt::format("{}: {} counted, below the bound of {}", pair_name(p),
                                         bytes_text(p.counted), bytes_text(p.bound)));
        if (p.counted_l2 && p.l2_bound && *p.counted_l2 < *p.l2_bound)
            missed.push_back(fmt::format("{}: {} counted at L2, below the bound of {}", pair_name(p),
                                         bytes_text(p.counted_l2), bytes_text(p.l2_bound)));
    }
    for (const ChosenOrder& o : report.orders)
        if (!(o.chosen_bytes <= (1 + order_limit) * o.best_bytes))
            missed.push_back(fmt::format("{}: order {} moves {}, {} would move {}; wanted within {}",
                                         shape_text(o.problem), order_text(o.chosen.order, o.chosen.group),
                                         bytes_text(o.chosen_bytes), order_text(o.best.order, o.best.group),
                                         bytes_text(o.best_bytes), percent_text(order_limit)));
    if (report.uncounted > 0) missed.push_back(fmt::format("{} rows were not counted", report.uncounted));
    return missed;
}

}  // namespace rooftile
