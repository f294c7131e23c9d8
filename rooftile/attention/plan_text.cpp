#include "rooftile/attention/plan_text.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/attention/space.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

const AttentionPlan& attention_of(const Plan& plan) { return plan.own.as<AttentionPlan>(); }

Table plan_table(const PlanSet& plans) {
    Table table({{"#", Align::right, 0, true},
                 {"tile"},
                 {"stages", Align::right, 1},
                 {"warpgroups", Align::right, 7},
                 {"schedule", Align::left, 5},
                 {"registers", Align::right, 4, true},
                 {"shared", Align::right, 4, true},
                 {"splits", Align::right, 6},
                 {"section", Align::right, 6},
                 {"t_mma clk", Align::right, 3, true},
                 {"t_exp clk", Align::right, 3, true},
                 {"block clk", Align::right, 3, true},
                 {"predicted", Align::right, 0, true},
                 {"TFLOP/s", Align::right, 2, true},
                 {"limited by", Align::left, 1, true},
                 {"buildable", Align::left, 2}});
    for (const Plan& any : plans.plans) {
        const AttentionPlan& plan = attention_of(any);
        const AttentionConfig& c = plan.config;
        const AttentionPrediction& p = plan.prediction;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        table.row({{std::to_string(plan.rank), tone},
                   {fmt::format("{}x{}", c.tile_q, c.tile_kv), tone},
                   {std::to_string(c.stages)},
                   {std::to_string(warpgroups_of(plan.problem, c))},
                   {c.schedule == Schedule::pingpong ? "pingpong" : "cooperative"},
                   {number_or_unknown(plan.resources.consumer_registers)},
                   {plan.resources.shared_bytes ? scaled_text(double(*plan.resources.shared_bytes), "B") : "?"},
                   {std::to_string(c.splits)},
                   {std::to_string(c.section_heads)},
                   {number_or_unknown(p.tensor_cycles)},
                   {number_or_unknown(p.exponential_cycles)},
                   {number_or_unknown(p.block_cycles)},
                   {time_or_unknown(p.time_us), tone},
                   {p.tflops ? number_text(*p.tflops) : "?", tone},
                   {p.bound ? std::string(name_of(*p.bound)) : "?"},
                   {plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint}});
    }
    return table;
}

std::string traffic_text(const AttentionPrediction& p) {
    if (!p.dram_bytes || !p.dram_lower_bound_bytes) return "?";
    return fmt::format("{} from and to DRAM, at least {}; {} asked of L2", scaled_text(double(*p.dram_bytes), "B"),
                       scaled_text(double(*p.dram_lower_bound_bytes), "B"),
                       p.l2_bytes ? scaled_text(double(*p.l2_bytes), "B") : "?");
}

}  // namespace

std::string label_of(const AttentionPlan& plan) {
    const AttentionConfig& c = plan.config;
    const int warpgroups = warpgroups_of(plan.problem, c);
    return fmt::format("{}x{}, {} stage{}, {} warpgroup{}{}", c.tile_q, c.tile_kv, c.stages, c.stages == 1 ? "" : "s",
                       warpgroups, warpgroups == 1 ? "" : "s",
                       c.schedule == Schedule::pingpong ? " in turns" : "")
           + (c.splits > 1 ? fmt::format(", {} shared out to {} CTAs", c.batch_invariant ? "pieces of each tile's own" : "blocks", c.splits)
                           : "")
           + (c.combine_apart ? ", added up by a second kernel" : "") + (c.ctas_per_sm > 1 ? fmt::format(", {} an SM", c.ctas_per_sm) : "");
}

std::string short_name(const AttentionProblem& p) {
    if (p.latent)
        return fmt::format("{}x{}, {} over latent rows{}{}{}, dim {}/{}, {}, {}", p.batch, p.heads, p.queries, p.cached ? " of caches to " : ", ", p.keys,
                           p.paged() ? fmt::format(" in pages of {}", p.page) : std::string(), p.dim, p.dim_v, mask_text(p), attention_type_name(p.type));
    if (p.packed())
        return fmt::format("{} packed, {} rows, {} heads{}, dim {}{}, {}, {}", p.batch, p.query_rows(), p.heads,
                           p.kv_heads == p.heads ? std::string() : fmt::format("/{}", p.kv_heads), p.dim,
                           p.dim_v == p.dim ? std::string() : fmt::format("/{}", p.dim_v), mask_text(p), attention_type_name(p.type));
    if (p.cached)
        return fmt::format("{}x{}{}, {} over caches to {}{}, dim {}{}, {}, {}", p.batch, p.heads, p.kv_heads == p.heads ? std::string() : fmt::format("/{}", p.kv_heads),
                           p.queries, p.keys, p.paged() ? fmt::format(" in pages of {}", p.page) : std::string(), p.dim,
                           p.dim_v == p.dim ? std::string() : fmt::format("/{}", p.dim_v), mask_text(p), attention_type_name(p.type));
    return fmt::format("{}x{}{}, {}x{}, dim {}{}, {}, {}", p.batch, p.heads,
                       p.kv_heads == p.heads ? std::string() : fmt::format("/{}", p.kv_heads), p.queries, p.keys, p.dim,
                       p.dim_v == p.dim ? std::string() : fmt::format("/{}", p.dim_v), mask_text(p),
                       attention_type_name(p.type));
}

std::string attention_heading_text(const AttentionProblem& p, std::string_view machine_id, std::string_view machine_name,
                                   const Terminal& terminal) {
    const std::string scale = p.scale > 0 ? fmt::format(" * {}", number_text(p.scale)) : fmt::format(" / sqrt({})", p.dim);
    std::string out = terminal.paint("attention", Tone::strong)
                      + (p.score ? fmt::format("  O = softmax(s) V, s = Q K^T{}, then {}, mask {}\n", scale, printable(p.score->expression, 200), mask_text(p))
                               : fmt::format("  O = softmax(Q K^T{}) V{}, mask {}\n", scale, p.latent ? fmt::format(", V the first {} columns of K", p.dim_v) : "", mask_text(p)));
    std::vector<Entry> entries;
    for (const TensorInfo& t : attention_tensors(p)) {
        std::string extents;
        double elements = 1;
        for (const Extent& e : t.extents) {
            extents += (extents.empty() ? "" : ",") + std::to_string(e.most);
            elements *= double(e.most);
        }
        entries.push_back({t.name, fmt::format("{}[{}]", t.type, extents),
                           fmt::format("{}, {}", t.role == TensorRole::in ? "in" : "out",
                                       scaled_text(elements * t.element_bits / 8, "B"))});
    }
    out += entries_text(entries, 6, terminal);
    return out
           + fmt::format("on {}  {}\n", terminal.paint(machine_id, Tone::strong), terminal.paint(machine_name, Tone::plain));
}

PlanPage attention_page(const PlanSet& plans, const Terminal& terminal) {
    const AttentionPlan& best = attention_of(plans.plans.front());
    const AttentionConfig& c = best.config;
    const AttentionPrediction& p = best.prediction;
    const std::vector<Step>& steps = plans.plans.front().derivation;
    PlanPage page{.heading = attention_heading_text(plans.problem.own.as<AttentionProblem>(), plans.machine_id, plans.machine_name, terminal),
                  .table = plan_table(plans),
                  .columns = {"tile_q", "tile_kv", "stages", "consumer_warpgroups", "schedule", "section_heads"}};
    page.why = {{fmt::format("why {}x{}", c.tile_q, c.tile_kv), limit_of(steps, "registers_needed")},
                {fmt::format("why {} stages", c.stages), fmt::format("shared memory holds {}; a load is {}", value_of(steps, "stages_max"), limit_of(steps, "load_cycles"))}};
    page.facts = {{"traffic", traffic_text(p)}};
    if (p.overlap_ceiling && p.overlap_gain)
        page.walls.push_back({"overlap", fmt::format("MMA and exponentials at once can gain {} times [M38]; plan 1 has {}", number_text(*p.overlap_ceiling, 3),
                                                     number_text(*p.overlap_gain, 3))});
    page.walls.push_back({"tile_q", limit_of(steps, "tile_q")});
    if (p.unfused_moved_bytes) page.walls.push_back({"unfused", fmt::format("three kernels would read and write {}", scaled_text(double(*p.unfused_moved_bytes), "B"))});
    return page;
}

}  // namespace rooftile
