#include "rooftile/gemm/plan_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

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

const GemmPlan& gemm_of(const Plan& plan) { return plan.own.as<GemmPlan>(); }

Table plan_table(const PlanSet& plans, std::optional<double> tensor_peak, const Terminal& terminal) {
    std::vector<Table::Column> columns = {{"#", Align::right, 0, true},
                                          {"tile", Align::left},
                                          {"stages", Align::right, 1},
                                          {"warpgroups", Align::right, 8},
                                          {"schedule", Align::left, 6},
                                          {"cluster", Align::left, 3},
                                          {"order", Align::left, 4},
                                          {"split-K", Align::right, 10},
                                          {"CTAs/SM", Align::right, 7},
                                          {"shared B", Align::right, 10, true},
                                          {"waves", Align::right, 11, true},
                                          {"wave eff.", Align::right, 9, true},
                                          {"predicted", Align::right, 0, true},
                                          {"TFLOP/s", Align::right, 3, true},
                                          {"limited by", Align::left, 1, true},
                                          {"DRAM over least", Align::right, 12, true},
                                          {"buildable", Align::left, 1}};
    // Only where another instruction is faster: elsewhere the peak is what `bound` speaks of.
    constexpr int before_bound = 14;
    if (tensor_peak) columns.insert(columns.begin() + before_bound, {"of tensor peak", Align::right, 1, true});
    Table table(columns);
    for (const Plan& any : plans.plans) {
        const GemmPlan& plan = gemm_of(any);
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
        if (tensor_peak) cells.push_back({p.tflops ? percent_text(*p.tflops * 1e12 / *tensor_peak) : unknown_sign()});
        cells.push_back({p.bound ? std::string(name_of(*p.bound)) : unknown_sign()});
        cells.push_back({times_text(p.dram_over_bound(), terminal)});
        cells.push_back({plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint});
        table.row(std::move(cells));
    }
    return table;
}

/// Of a step; NaN where there is none, or its value is unknown.
double step_value(const GemmPlan& plan, std::string_view quantity) {
    const Step* step = step_of(plan.derivation, quantity);
    return step ? step->value.value_or(unknown_number) : unknown_number;
}

/// Where no time is known: what the method ranks by [M8].
Table method_table(const PlanSet& plans) {
    Table table({{"#", Align::right, 0, true}, {"tile", Align::left}, {"FLOP/B"}, {"stages"}, {"least stages"}, {"threads", Align::right, 3}, {"CTAs/SM", Align::right, 2}, {"registers a thread"},
                 {"of"}, {"shared B"}, {"of", Align::right, 1}, {"verdict", Align::left}});
    for (const Plan& any : plans.plans) {
        const GemmPlan& plan = gemm_of(any);
        const GemmConfig& c = plan.config;
        const Prediction& p = plan.prediction;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        const double critical = step_value(plan, "intensity_critical"), own = p.arithmetic_intensity.value_or(unknown_number);
        const auto whole = [&](double value) { return std::isnan(value) ? unknown_sign() : fmt::format("{:.0f}", value); };
        const double problem = plan.problem.flops().value / plan.problem.compulsory_bytes().value;
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
    return table;
}

/// Collects what tells two plans apart, the weightiest first.
class Differences {
  public:
    void add(std::string text) { why_.push_back(std::move(text)); }

    template <class T>
    void less(const std::optional<T>& best, const std::optional<T>& other, std::string_view what) {
        if (best && other && double(*other) < double(*best) * 0.995)
            add(fmt::format("{} {} against {}", what, number_text(double(*other), 3),
                            number_text(double(*best), 3)));
    }
    template <class T>
    void more(const std::optional<T>& best, const std::optional<T>& other, std::string_view what) {
        if (best && other && double(*other) > double(*best) * 1.005)
            add(fmt::format("{} times the {}", number_text(double(*other) / double(*best), 3), what));
    }
    std::string text(size_t most) const {
        std::string out;
        for (size_t i = 0; i < std::min(most, why_.size()); ++i) out += (i ? ", " : "") + why_[i];
        return out;
    }

  private:
    std::vector<std::string> why_;
};

/// What `other` lost to `best` by, as far as the model tells them apart.
std::string why_behind(const GemmPlan& best, const GemmPlan& other) {
    const Prediction &b = best.prediction, &o = other.prediction;
    Differences why;
    if (b.time_us && o.time_us) {
        const double slower = *o.time_us / *b.time_us - 1;
        if (slower >= 0.0005) why.add(percent_text(slower) + " slower");
        else if (slower <= -0.0005) why.add(percent_text(-slower) + " faster by the model");
    }
    if (best.buildable && !other.buildable) why.add("no kernel can be built for it yet");
    if (b.bound && o.bound && *b.bound != *o.bound)
        why.add(fmt::format("bound by {}, not {}", name_of(*o.bound), name_of(*b.bound)));
    why.less(b.wave_efficiency, o.wave_efficiency, "wave efficiency");
    why.less(b.arithmetic_intensity, o.arithmetic_intensity, "FLOP/B of a tile");
    why.more(b.dram_bytes, o.dram_bytes, "DRAM bytes");
    why.more(b.l2_bytes, o.l2_bytes, "L2 bytes");
    if (other.config.stages < best.config.stages)
        why.add(fmt::format("{} stages against {}", other.config.stages, best.config.stages));
    const std::string text = why.text(4);
    return text.empty() ? "nothing in the model tells it from plan 1" : text;
}

/// The method's next larger tile, and what stops it.
void add_walls(const GemmPlan& plan, std::vector<Remark>& walls) {
    const std::vector<Step>& steps = plan.derivation;
    walls.push_back({"next larger tile", limit_of(steps, "next_larger_tile")});
    walls.push_back({"by more threads", limit_of(steps, "larger_by_threads")});
    walls.push_back({"C partly in shared memory", limit_of(steps, "larger_in_shared")});
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
    if (c.epilogue_apart) out += ", its epilogue a kernel after it";
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
                    name_of(p.a_type), times, p.b_name(), terminal.sign("→", "->"), name_of(p.c_type),
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

PlanPage gemm_page(const PlanSet& plans, std::optional<double> tensor_peak, const Terminal& terminal) {
    const GemmPlan& best = gemm_of(plans.plans.front());
    const GemmConfig& c = best.config;
    const bool timed = best.prediction.time_us.has_value();
    const std::vector<Step>& steps = best.derivation;
    PlanPage page{.heading = heading_text(best.problem, plans.machine_id, plans.machine_name, terminal),
                  .table = timed ? plan_table(plans, tensor_peak, terminal) : method_table(plans),
                  .columns = {"kernel", "tile_m", "tile_n", "tile_k", "swap_ab", "stages", "consumer_warpgroups", "schedule", "cluster_m", "cluster_n", "order",
                              "group", "split_k", "grid_split_k", "ctas_per_sm"}};
    if (!c.epilogue_apart) {  // whose steps are its parts'
        const std::string wider = limit_of(steps, "next_tile_n"), taller = limit_of(steps, "next_tile_m");
        page.why = {{fmt::format("why {}", tile_text(c)), fmt::format("{} of {} registers a thread{}{}{}{}", value_of(steps, "registers_per_thread"), value_of(steps, "registers_limit"),
                                                                     wider.empty() ? "" : "; ", wider, taller.empty() ? "" : "; ", taller)},
                    {fmt::format("why {} stages", c.stages), fmt::format("{}; {}", best.prediction.stages_min ? fmt::format("{} hide the latency", value_of(steps, "stages_needed")) : "least not known", limit_of(steps, "stages_max"))}};
        add_walls(best, timed ? page.walls : page.why);
    }
    if (const std::string traffic = traffic_text(best.prediction, terminal); !traffic.empty()) page.facts.push_back({"traffic of plan 1", traffic});
    for (const Plan& plan : plans.plans) page.behind.push_back(why_behind(best, gemm_of(plan)));
    return page;
}

}  // namespace rooftile
