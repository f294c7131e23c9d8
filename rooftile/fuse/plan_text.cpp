#include "rooftile/fuse/plan_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string bytes_or_unknown(const std::optional<std::int64_t>& bytes) {
    return bytes ? scaled_text(double(*bytes), "B") : std::string("?");
}

std::string team_text(const FuseConfig& c) {
    if (c.form == FuseForm::columns)
        return fmt::format("{} x {} threads", c.threads_per_row, c.threads / c.threads_per_row);
    if (c.threads_per_row == 0) return "";
    if (reduces_across_grid(c)) return fmt::format("{} CTAs", c.cluster);
    if (c.cluster > 1) return fmt::format("cluster of {}", c.cluster);
    if (c.threads_per_row > warp_threads) return "CTA";
    if (c.threads_per_row == 1)
        return c.rows_per_thread > 1 ? fmt::format("1/{} thread", c.rows_per_thread) : std::string("thread");
    return c.threads_per_row == warp_threads ? std::string("warp")
                                             : fmt::format("{} threads", c.threads_per_row);
}

std::string plan_table(const FusePlans& plans, const Terminal& terminal) {
    const bool rows = plans.plans.front().program.form == FuseForm::row;
    const bool split = std::ranges::any_of(plans.plans, [](const FusePlan& plan) { return plan.config.row_splits > 1; });
    std::vector<Table::Column> columns{{"#"},
                                       {"row of", Align::left, rows ? 0 : 12},
                                       {"storage", Align::left, rows ? 2 : 11},
                                       {"width"},
                                       {"vectors"},
                                       {"threads"},
                                       {"CTAs/SM", Align::right, 5},
                                       {"grid", Align::right, 6},
                                       {"schedule", Align::left, 7},
                                       {"in flight", Align::right, 4},
                                       {"needed", Align::right, 4},
                                       {"predicted"},
                                       {"GB/s"},
                                       {"bound", Align::left},
                                       {"buildable", Align::left, 3}};
    constexpr int before_splits = 6;  // behind the threads of a CTA, whose rows the splits share
    if (split) columns.insert(columns.begin() + before_splits, {"row splits"});
    Table table(columns);
    for (const FusePlan& plan : plans.plans) {
        const FuseConfig& c = plan.config;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        std::vector<Table::Cell> cells{{std::to_string(plan.rank), tone},
                   {team_text(c), tone},
                   {std::string(c.row_storage == RowStorage::none ? "" : name_of(c.row_storage))},
                   {std::to_string(c.vector_width)},
                   {std::to_string(c.vectors_per_thread)},
                   {std::to_string(c.threads)},
                   {std::to_string(c.ctas_per_sm)},
                   {std::to_string(c.grid)},
                   {c.persistent ? "persistent" : "one piece"},
                   {bytes_or_unknown(plan.resources.bytes_in_flight)},
                   {bytes_or_unknown(plan.resources.bytes_in_flight_needed)},
                   {time_or_unknown(plan.prediction.time_us), tone},
                   {plan.prediction.gbytes_per_s ? number_text(*plan.prediction.gbytes_per_s, 4) : "?", tone},
                   {plan.prediction.bound ? std::string(name_of(*plan.prediction.bound)) : "?"},
                   {plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint}};
        if (split) cells.insert(cells.begin() + before_splits, {std::to_string(c.row_splits)});
        table.row(cells);
    }
    return table.text(terminal);
}

std::string why_behind(const FusePlan& best, const FusePlan& other) {
    if (!best.prediction.time_us || !other.prediction.time_us)
        return "an unknown number leaves it without a time";
    const double slower = *other.prediction.time_us / *best.prediction.time_us - 1;
    if (std::abs(slower) < 0.0005) return "as fast by the model";
    return percent_text(std::abs(slower)) + (slower > 0 ? " slower" : " faster by the model");
}

}  // namespace

std::string label_of(const FuseConfig& c) {
    const std::string vectors = fmt::format("{} vector{} of {}, {} threads", c.vectors_per_thread,
                                            c.vectors_per_thread == 1 ? "" : "s", c.vector_width, c.threads);
    if (c.threads_per_row == 0) return vectors + (c.persistent ? ", persistent" : "");
    if (c.form == FuseForm::columns)
        return fmt::format("{} x {}{}", c.threads_per_row, vectors,
                           c.row_splits > 1 ? fmt::format(", {} share the rows", c.row_splits) : "");
    return fmt::format("{} a row, {}, {}{}{}", team_text(c), vectors, name_of(c.row_storage),
                       c.persistent ? ", persistent" : "",
                       c.reduction_threads > 0 ? fmt::format(", {} reduce", c.reduction_threads) : "");
}

std::string fuse_heading_text(const ExpressionGraph& problem, std::string_view machine_id,
                              std::string_view machine_name, const Terminal& terminal) {
    std::string out = terminal.paint("fuse", Tone::strong) + "  "
                      + wrapped(displayable(problem.text, terminal.utf8), terminal.prose() - 6, 6) + "\n";
    std::vector<Entry> tensors;
    const auto tensor = [&](const std::string& name, int index, const char* role) {
        const GraphNode& n = problem.nodes[size_t(index)];
        tensors.push_back({name, fmt::format("{}{}", name_of(n.element), text_of(n.shape)),
                           fmt::format("{}, {}", role, scaled_text(double(bytes_of(n)), "B"))});
    };
    for (int i : problem.inputs) tensor(problem.nodes[size_t(i)].name, i, "in");
    for (const GraphOutput& o : problem.outputs) tensor(o.name, o.node, "out");
    out += entries_text(tensors, 6, terminal);
    return out
           + fmt::format("on {}  {}\n", terminal.paint(machine_id, Tone::strong),
                         terminal.paint(machine_name, Tone::plain));
}

std::string fuse_counting_text(const std::vector<FuseOperator>& operators, const FuseTotals& unfused,
                               const FuseTotals& fused, const Terminal& terminal) {
    Table table({{"kernel", Align::left},
                 {"stores", Align::left, 3},
                 {"moved"},
                 {"from DRAM", Align::right, 2},
                 {"predicted"},
                 {"bound", Align::left, 1}});
    for (const FuseOperator& op : operators)
        table.row({{op.text},
                   {op.type},
                   {bytes_or_unknown(op.totals.moved_bytes)},
                   {bytes_or_unknown(op.totals.dram_bytes)},
                   {time_or_unknown(op.totals.time_us)},
                   {op.bound ? std::string(name_of(*op.bound)) : "?"}});
    const auto sum = [&](const char* name, const FuseTotals& t) {
        table.row({{name, Tone::strong},
                   {fmt::format("{} kernel{}", t.kernels, t.kernels == 1 ? "" : "s")},
                   {bytes_or_unknown(t.moved_bytes), Tone::strong},
                   {bytes_or_unknown(t.dram_bytes)},
                   {time_or_unknown(t.time_us), Tone::strong},
                   {""}});
    };
    sum("unfused", unfused);
    if (fused.moved_bytes) sum("fused", fused);
    std::string out = table.text(terminal);
    if (fused.moved_bytes && *fused.moved_bytes > 0 && unfused.moved_bytes)
        out += fmt::format("  {} times fewer bytes{}\n",
                           number_text(double(*unfused.moved_bytes) / double(*fused.moved_bytes), 3),
                           unfused.time_us && fused.time_us ? fmt::format(
                               ", {} times as fast", number_text(*unfused.time_us / *fused.time_us, 3))
                                                            : "");
    return out;
}

std::string plan_text(const FusePlans& plans, bool explain, std::span<const Explanation> explanations,
                      const Terminal& terminal) {
    std::string out = fuse_heading_text(plans.problem, plans.machine_id, plans.machine_name, terminal);
    out += "\n" + fuse_counting_text(plans.operators, plans.unfused, plans.fused, terminal);
    out += "\n" + plan_table(plans, terminal) + "\n";
    if (!plans.plans.front().buildable) out += entry("not buildable", plans.plans.front().why_not, terminal);
    if (plans.rejected.count() > 0)
        out += entry(
            "rejected",
            fmt::format("{} launches by constraints or rules, or behind those kept", plans.rejected.count()),
            terminal);
    if (!plans.unknown.empty()) out += entry("unknown", joined(plans.unknown), terminal);
    if (!plans.unchecked_constraints.empty())
        out += entry("not checked", joined(plans.unchecked_constraints), terminal);
    for (const auto& note : plans.notes) out += entry("note", note, terminal);
    if (!explain) return out;
    out += rules_text(plans.rejected, terminal);
    const FusePlan& best = plans.plans.front();
    out += "\n" + terminal.paint(fmt::format("Why plan 1: {}", label_of(best.config)), Tone::strong) + "\n";
    out += steps_text(best.derivation, terminal);
    if (explanations.empty()) return out;
    out += "\n" + terminal.paint("From the roof to the prediction, plan 1", Tone::strong) + "\n\n"
           + attainability_text(explanations.front().attainability, std::nullopt, terminal);
    std::vector<NamedPlan> named;
    for (const FusePlan& plan : plans.plans)
        named.push_back({label_of(plan.config), plan.prediction.time_us, why_behind(best, plan)});
    return out + runners_up_text(named, explanations, terminal);
}

}  // namespace rooftile
