#include "rooftile/gemm/plan_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/gemm/explain_text.hpp"
#include "rooftile/gemm/simulate_orders.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string unknown_sign() { return "?"; }

std::string tile_text(const GemmConfig& c) { return fmt::format("{}x{}x{}", c.tile_m, c.tile_n, c.tile_k); }

/// "2.06 x".
std::string times_text(const std::optional<double>& ratio, const Terminal& terminal) {
    return ratio ? fmt::format("{:.2f} {}", *ratio, terminal.sign("×", "x")) : unknown_sign();
}

/// What plan 1 moves at each level, and how many times the least that any schedule could.
std::string traffic_text(const Prediction& p, const Terminal& terminal) {
    std::string out;
    const auto level = [&](const char* name, const std::optional<std::int64_t>& moved,
                           const std::optional<double>& over) {
        if (!moved) return;
        out += fmt::format("{}{} {} ({})", out.empty() ? "" : ", ", name, scaled_text(double(*moved), "B"),
                           over ? times_text(over, terminal) : std::string("bound unknown"));
    };
    level("DRAM", p.dram_bytes, p.dram_over_bound());
    level("L2", p.l2_bytes, p.l2_over_bound());
    level("shared memory", p.shared_traffic_bytes, p.shared_over_bound());
    return out.empty() ? out : out + ": times the least that any schedule moves";
}

std::string plan_table(const Plans& plans, const Terminal& terminal) {
    std::vector<Table::Column> columns = {{"#"},
                                          {"tile", Align::left},
                                          {"stages"},
                                          {"warpgroups", Align::right, 3},
                                          {"schedule", Align::left, 2},
                                          {"cluster", Align::left, 8},
                                          {"order", Align::left, 9},
                                          {"split-K", Align::right, 10},
                                          {"CTAs/SM", Align::right, 7},
                                          {"shared B", Align::right, 5},
                                          {"waves", Align::right, 4},
                                          {"wave eff.", Align::right, 6},
                                          {"predicted"},
                                          {"TFLOP/s"},
                                          {"bound", Align::left},
                                          {"DRAM over least", Align::right, 9},
                                          {"buildable", Align::left, 1}};
    // Only where another instruction is faster: elsewhere the peak is what `bound` speaks of.
    constexpr int before_bound = 14;
    if (plans.tensor_peak) columns.insert(columns.begin() + before_bound, {"of tensor peak"});
    Table table(columns);
    for (const GemmPlan& plan : plans.plans) {
        const GemmConfig& c = plan.config;
        const Prediction& p = plan.prediction;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        std::vector<Table::Cell> cells = {
            {std::to_string(plan.rank), tone},
            {tile_text(c) + (c.swap_ab ? " swapped" : ""), tone},
            {std::to_string(c.stages)},
            {std::to_string(c.consumer_warpgroups)},
            {std::string(name_of(c.schedule))},
            {fmt::format("{}x{}", c.cluster_m, c.cluster_n)},
            {order_text(c.order, c.group)},
            {c.grid_split_k == 1 ? std::to_string(c.split_k) : fmt::format("{}x{}", c.split_k, c.grid_split_k)},
            {std::to_string(c.ctas_per_sm)},
            {number_or_unknown(plan.resources.shared_bytes)},
            {number_or_unknown(p.waves)},
            {p.wave_efficiency ? percent_text(*p.wave_efficiency) : unknown_sign()},
            {time_or_unknown(p.time_us), tone},
            {p.tflops ? number_text(*p.tflops, 4) : unknown_sign(), tone}};
        if (plans.tensor_peak)
            cells.push_back({p.tflops ? percent_text(*p.tflops * 1e12 / *plans.tensor_peak) : unknown_sign()});
        cells.push_back({p.bound ? std::string(name_of(*p.bound)) : unknown_sign()});
        cells.push_back({times_text(p.dram_over_bound(), terminal)});
        cells.push_back({plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint});
        table.row(std::move(cells));
    }
    return table.text(terminal);
}

/// Of a step; NaN where there is none, or its value is unknown.
double step_value(const GemmPlan& plan, std::string_view quantity) {
    for (const Step& step : plan.derivation)
        if (step.quantity == quantity) return step.value.value_or(unknown_number);
    return unknown_number;
}

/// Where no time is known: what the method ranks by [M8].
std::string method_table(const Plans& plans, const Terminal& terminal) {
    Table table({{"#"}, {"tile", Align::left}, {"FLOP/B"}, {"stages"}, {"least stages"}, {"threads", Align::right, 3}, {"CTAs/SM", Align::right, 2}, {"registers a thread"},
                 {"of"}, {"shared B"}, {"of", Align::right, 1}, {"verdict", Align::left}});
    for (const GemmPlan& plan : plans.plans) {
        const GemmConfig& c = plan.config;
        const Prediction& p = plan.prediction;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        const double critical = step_value(plan, "intensity_critical"), own = p.arithmetic_intensity.value_or(unknown_number);
        const auto whole = [&](double value) { return std::isnan(value) ? unknown_sign() : fmt::format("{:.0f}", value); };
        const double problem = plans.problem.flops().value / plans.problem.compulsory_bytes().value;
        std::string verdict = fmt::format("{} of I_crit {:.4g}: reuse in L2 decides", percent_text(own / critical), critical);
        if (std::isnan(critical)) verdict = "I_crit unknown";
        else if (problem < critical) verdict = fmt::format("DRAM-bound: the product has {} FLOP/B, I_crit {:.4g}", number_text(problem, 3), critical);
        else if (own >= critical) verdict = fmt::format("compute-bound: I_crit {:.4g}", critical);
        table.row({{std::to_string(plan.rank), tone},
                   {tile_text(c) + (c.swap_ab ? " swapped" : ""), tone},
                   {number_text(own, 4)},
                   {std::to_string(c.stages)},
                   {p.stages_min ? std::to_string(*p.stages_min) : "2 assumed"},
                   {number_or_unknown(plan.resources.threads)},
                   {std::to_string(c.ctas_per_sm)},
                   {whole(step_value(plan, "registers_per_thread"))},
                   {whole(step_value(plan, "registers_limit"))},
                   {number_or_unknown(plan.resources.shared_bytes)},
                   {whole(step_value(plan, "shared_limit"))},
                   {std::move(verdict)}});
    }
    std::string out = table.text(terminal) + "\n";
    for (const Step& step : plans.plans.front().derivation) {
        if (step.quantity == "next_larger_tile") out += entry("next larger tile", fmt::format("{} FLOP/B: {}", number_text(step.value.value_or(0), 4), step.limit), terminal);
        if (step.quantity == "larger_by_threads") out += entry("by more threads", step.limit, terminal);
        if (step.quantity == "larger_in_shared") out += entry("C partly in shared memory", step.limit, terminal);
    }
    return out;
}

std::string_view words_of(Reason reason) {
    if (reason == Reason::shared) return "shared memory";
    if (reason == Reason::rule) return "left out by rules";
    if (reason == Reason::dominated) return "feasible but not among those kept";
    return name_of(reason);
}

std::string closing_text(const Plans& plans, const Terminal& terminal) {
    std::string out;
    std::string reasons;
    for (int i = 0; i < reason_count; ++i)
        if (auto n = plans.rejected.reasons[size_t(i)])
            reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", n, words_of(Reason(i)));
    out += entry("rejected", reasons.empty() ? "0" : fmt::format("{}: {}", plans.rejected.count(), reasons),
                 terminal);
    std::vector<std::string> whys;
    for (const GemmPlan& plan : plans.plans)
        if (!plan.buildable && !plan.why_not.empty()
            && std::find(whys.begin(), whys.end(), plan.why_not) == whys.end())
            whys.push_back(plan.why_not);
    for (const auto& why : whys) out += entry("not buildable", why, terminal);
    if (!plans.unknown.empty()) out += entry("unknown", joined(plans.unknown), terminal);
    if (!plans.unchecked_constraints.empty())
        out += entry("not checked", joined(plans.unchecked_constraints), terminal);
    for (const auto& note : plans.notes) out += entry("note", note, terminal);
    return out;
}

}  // namespace

std::string order_text(Order order, int group) {
    return has_groups(order) ? fmt::format("{} {}", name_of(order), group) : std::string(name_of(order));
}

std::string label_of(const GemmConfig& c) {
    std::string out = fmt::format("{}, {} stages", tile_text(c), c.stages);
    if (c.consumer_warpgroups > 0)
        out += fmt::format(", {} warpgroup{}, {}", c.consumer_warpgroups,
                           c.consumer_warpgroups == 1 ? "" : "s", name_of(c.schedule));
    if (c.swap_ab) out += ", A and B swapped";
    if (c.cluster_m * c.cluster_n > 1) out += fmt::format(", cluster {}x{}", c.cluster_m, c.cluster_n);
    if (c.split_k > 1) out += fmt::format(", split-K {}", c.split_k);
    if (c.grid_split_k > 1) out += fmt::format(", {} pieces of K", c.grid_split_k);
    if (c.dynamic_scheduler) out += ", dynamic scheduler";
    if (c.ctas_per_sm > 1) out += fmt::format(", {} CTAs/SM", c.ctas_per_sm);
    if (c.epilogue_apart) out += ", its epilogue a kernel behind it";
    return out;
}

std::string heading_text(const GemmProblem& p, std::string_view machine_id, std::string_view machine_name,
                         const Terminal& terminal) {
    const std::string times(terminal.sign("×", "x"));
    const double flops = p.flops().value, bytes = p.compulsory_bytes().value;
    const std::string sizes = fmt::format("gemm {}{} {} {} {} {}", p.batch > 1 ? fmt::format("{} of ", p.batch) : "", p.m, times, p.n, times, p.k);
    const std::string rows = p.groups ? fmt::format(", M the sum of {} group{}", p.groups->count(), p.groups->count() == 1 ? "" : "s") : "";
    const std::string kind =
        fmt::format("(M {} N {} K{})  {} {} {} {} {}, {} accumulate, A {}-major, B {}-major", times, times, rows,
                    name_of(p.a_type), times, name_of(p.b_type), terminal.sign("→", "->"), name_of(p.c_type),
                    name_of(p.accumulate_type), a_major_name(p.a_major), b_major_name(p.b_major));
    const int indent = columns_of(sizes) + 2;
    std::string out = terminal.paint(sizes, Tone::strong) + "  "
                      + wrapped(kind, std::max(24, terminal.prose() - indent), indent) + "\n";
    out += fmt::format("{}, at least {} to move: {} FLOP/B\n", scaled_text(flops, "FLOP"),
                       scaled_text(bytes, "B"), number_text(flops / bytes));
    out += fmt::format("on {}  {}\n", terminal.paint(machine_id, Tone::strong),
                       terminal.paint(machine_name, Tone::plain));
    return out;
}

std::string plan_text(const Plans& plans, bool explain, const Terminal& terminal,
                      std::span<const Explanation> explanations) {
    std::string out = heading_text(plans.problem, plans.machine_id, plans.machine_name, terminal);
    const bool timed = plans.plans.empty() || plans.plans.front().prediction.time_us;
    out += "\n" + (timed ? plan_table(plans, terminal) + "\n" : method_table(plans, terminal));
    if (!plans.plans.empty())
        if (const auto traffic = traffic_text(plans.plans.front().prediction, terminal); !traffic.empty())
            out += entry("traffic of plan 1", traffic, terminal);
    out += closing_text(plans, terminal);
    if (explain) out += rules_text(plans.rejected, terminal);
    if (plans.plans.empty()) return out;
    const auto titled = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) out += "\n" + terminal.paint(title, Tone::strong) + "\n\n" + text;
    };
    if (explain) out += "\n" + derivation_text(plans.plans.front(), terminal);
    if (explain && !explanations.empty())
        titled("From the roof to the prediction, plan 1",
               attainability_text(explanations.front().attainability, std::nullopt, terminal));
    const std::vector<NamedPlan> named = named_plans(plans);
    if (explain) out += runners_up_text(named, explanations, terminal);
    if (!explanations.empty() && explanations.front().energy)
        titled("Energy of one launch, plan 1", energy_text(*explanations.front().energy, terminal)
                                                   + min_energy_text(named, explanations, terminal));
    return out;
}

}  // namespace rooftile
