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

const FusePlan& fuse_of(const Plan& plan) { return plan.own.as<FusePlan>(); }

Table plan_table(const PlanSet& plans) {
    const bool split = std::ranges::any_of(plans.plans, [](const Plan& plan) { return fuse_of(plan).config.row_splits > 1; });
    Table table({{"#", Align::right, 0, true},
                 {"row of", Align::left, 1},
                 {"storage", Align::left, 2},
                 {"width", Align::right, 2},
                 {"vectors", Align::right, 1},
                 {"threads", Align::right, 1},
                 {"row splits", Align::right, 5},
                 {"CTAs/SM", Align::right, 5},
                 {"grid", Align::right, 6},
                 {"schedule", Align::left, 7},
                 {"in flight", Align::right, 4, true},
                 {"needed", Align::right, 4, true},
                 {"predicted", Align::right, 0, true},
                 {"GB/s", Align::right, 3, true},
                 {"limited by", Align::left, 1, true},
                 {"buildable", Align::left, 3}});
    for (const Plan& any : plans.plans) {
        const FusePlan& plan = fuse_of(any);
        const FuseConfig& c = plan.config;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        std::vector<Table::Cell> cells{{std::to_string(plan.rank), tone},
                   {team_text(c), tone},
                   {std::string(c.row_storage == RowStorage::none ? "" : name_of(c.row_storage))},
                   {std::to_string(c.vector_width)},
                   {std::to_string(c.vectors_per_thread)},
                   {std::to_string(c.threads)},
                   {split ? std::to_string(c.row_splits) : ""},
                   {std::to_string(c.ctas_per_sm)},
                   {std::to_string(c.grid)},
                   {c.persistent ? "persistent" : "one piece"},
                   {bytes_or_unknown(plan.resources.bytes_in_flight)},
                   {bytes_or_unknown(plan.resources.bytes_in_flight_needed)},
                   {time_or_unknown(plan.prediction.time_us), tone},
                   {plan.prediction.gbytes_per_s ? number_text(*plan.prediction.gbytes_per_s, 4) : "?", tone},
                   {plan.prediction.bound ? std::string(name_of(*plan.prediction.bound)) : "?"},
                   {plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint}};
        table.row(std::move(cells));
    }
    return table;
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
    if (operators.size() == 1) return out + "  one operator: nothing to fuse\n";
    if (fused.moved_bytes && *fused.moved_bytes > 0 && unfused.moved_bytes)
        out += fmt::format("  {} of the bytes{}\n", percent_text(double(*fused.moved_bytes) / double(*unfused.moved_bytes)),
                           unfused.time_us && fused.time_us ? fmt::format(
                               ", {} times as fast", number_text(*unfused.time_us / *fused.time_us, 3))
                                                            : "");
    return out;
}

PlanPage fuse_page(const PlanSet& plans, const std::vector<FuseOperator>& operators, const FuseTotals& unfused, const FuseTotals& fused,
                   const Terminal& terminal) {
    const Plan& first = plans.plans.front();
    const FusePlan& best = fuse_of(first);
    const std::vector<Step>& steps = first.derivation;
    PlanPage page{.heading = fuse_heading_text(plans.problem.own.as<ExpressionGraph>(), plans.machine_id, plans.machine_name, terminal),
                  .lead = fuse_counting_text(operators, unfused, fused, terminal),
                  .table = plan_table(plans),
                  .columns = {"form", "threads_per_row", "rows_per_thread", "rows_per_cta", "cluster", "row_storage", "vector_width", "vectors_per_thread", "threads", "row_splits",
                              "ctas_per_sm", "grid", "persistent"}};
    page.why = {{fmt::format("why vectors of {}", best.config.vector_width), limit_of(steps, "vector_width")},
                {fmt::format("why {} threads", best.config.threads), "bytes in flight: " + limit_of(steps, "bytes_in_flight")}};
    page.walls = {{"registers", limit_of(steps, "elements_per_thread")},
                  {"a row", limit_of(steps, "rows_per_cta")},
                  {"CTAs of an SM", limit_of(steps, "ctas_per_sm")},
                  {"waves", limit_of(steps, "grid")},
                  {"issue slots", limit_of(steps, "issue_time")}};
    return page;
}

}  // namespace rooftile
