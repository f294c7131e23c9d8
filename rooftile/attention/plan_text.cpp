#include "rooftile/attention/plan_text.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string plan_table(const AttentionPlans& plans, const Terminal& terminal) {
    Table table({{"#"},
                 {"tile"},
                 {"stages"},
                 {"warpgroups"},
                 {"schedule", Align::left, 5},
                 {"registers", Align::right, 4},
                 {"shared", Align::right, 4},
                 {"section", Align::right, 6},
                 {"t_mma", Align::right, 3},
                 {"t_exp", Align::right, 3},
                 {"block", Align::right, 3},
                 {"predicted"},
                 {"TFLOP/s"},
                 {"bound", Align::left, 1},
                 {"buildable", Align::left, 2}});
    for (const AttentionPlan& plan : plans.plans) {
        const AttentionConfig& c = plan.config;
        const AttentionPrediction& p = plan.prediction;
        const Tone tone = plan.rank == 1 ? Tone::strong : Tone::plain;
        table.row({{std::to_string(plan.rank), tone},
                   {fmt::format("{}x{}", c.tile_q, c.tile_kv), tone},
                   {std::to_string(c.stages)},
                   {std::to_string(c.consumer_warpgroups())},
                   {c.schedule == Schedule::pingpong ? "pingpong" : "cooperative"},
                   {number_or_unknown(plan.resources.consumer_registers)},
                   {plan.resources.shared_bytes ? scaled_text(double(*plan.resources.shared_bytes), "B") : "?"},
                   {std::to_string(c.section_heads)},
                   {number_or_unknown(p.tensor_cycles)},
                   {number_or_unknown(p.exponential_cycles)},
                   {number_or_unknown(p.block_cycles)},
                   {time_or_unknown(p.time_us), tone},
                   {p.tflops ? number_text(*p.tflops) : "?", tone},
                   {p.bound ? std::string(name_of(*p.bound)) : "?"},
                   {plan.buildable ? "yes" : "no", plan.buildable ? Tone::good : Tone::faint}});
    }
    return table.text(terminal);
}

std::string why_behind(const AttentionPlan& best, const AttentionPlan& other) {
    if (!best.prediction.time_us || !other.prediction.time_us) return "an unknown number leaves it without a time";
    const double slower = *other.prediction.time_us / *best.prediction.time_us - 1;
    if (slower < 0.0005) return "as fast by the model";
    return percent_text(slower) + " slower";
}

std::string traffic_text(const AttentionPrediction& p) {
    if (!p.dram_bytes || !p.dram_lower_bound_bytes) return "?";
    return fmt::format("{} from and to DRAM, at least {}; {} asked of L2", scaled_text(double(*p.dram_bytes), "B"),
                       scaled_text(double(*p.dram_lower_bound_bytes), "B"),
                       p.l2_bytes ? scaled_text(double(*p.l2_bytes), "B") : "?");
}

}  // namespace

std::string label_of(const AttentionConfig& c) {
    return fmt::format("{}x{}, {} stage{}, {} warpgroup{}{}", c.tile_q, c.tile_kv, c.stages, c.stages == 1 ? "" : "s",
                       c.consumer_warpgroups(), c.consumer_warpgroups() == 1 ? "" : "s",
                       c.schedule == Schedule::pingpong ? " in turns" : "");
}

std::string short_name(const AttentionProblem& p) {
    if (p.packed())
        return fmt::format("{} packed, {} rows, {} heads{}, dim {}{}, {}, {}", p.batch, p.query_rows(), p.heads,
                           p.kv_heads == p.heads ? std::string() : fmt::format("/{}", p.kv_heads), p.dim,
                           p.dim_v == p.dim ? std::string() : fmt::format("/{}", p.dim_v), mask_text(p), attention_type_name(p.type));
    return fmt::format("{}x{}{}, {}x{}, dim {}{}, {}, {}", p.batch, p.heads,
                       p.kv_heads == p.heads ? std::string() : fmt::format("/{}", p.kv_heads), p.queries, p.keys, p.dim,
                       p.dim_v == p.dim ? std::string() : fmt::format("/{}", p.dim_v), mask_text(p),
                       attention_type_name(p.type));
}

std::string attention_heading_text(const AttentionProblem& p, std::string_view machine_id, std::string_view machine_name,
                                   const Terminal& terminal) {
    std::string out = terminal.paint("attention", Tone::strong)
                      + (p.score ? fmt::format("  O = softmax(s) V, s = Q K^T / sqrt({}), then {}, mask {}\n", p.dim, printable(p.score->expression, 200), mask_text(p))
                               : fmt::format("  O = softmax(Q K^T / sqrt({})) V, mask {}\n", p.dim, mask_text(p)));
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

std::string plan_text(const AttentionPlans& plans, bool explain, std::span<const Explanation> explanations,
                      const Terminal& terminal) {
    std::string out = attention_heading_text(plans.problem, plans.machine_id, plans.machine_name, terminal);
    out += "\n" + plan_table(plans, terminal) + "\n";
    const AttentionPlan& best = plans.plans.front();
    const AttentionPrediction& p = best.prediction;
    if (p.overlap_ceiling && p.overlap_gain)
        out += entry("overlap",
                     fmt::format("products and exponentials side by side can gain {} times [M38]; plan 1 has {}",
                                 number_text(*p.overlap_ceiling, 3), number_text(*p.overlap_gain, 3)),
                     terminal);
    out += entry("traffic", traffic_text(p), terminal);
    if (p.unfused_moved_bytes)
        out += entry("unfused", fmt::format("as three kernels {} would be read and written", scaled_text(double(*p.unfused_moved_bytes), "B")),
                     terminal);
    if (!best.buildable) out += entry("not buildable", best.why_not, terminal);
    if (plans.rejected.count() > 0)
        out += entry("rejected", fmt::format("{} configurations by constraints, or behind those kept", plans.rejected.count()),
                     terminal);
    if (!plans.unknown.empty()) out += entry("unknown", joined(plans.unknown), terminal);
    if (!plans.unchecked_constraints.empty()) out += entry("not checked", joined(plans.unchecked_constraints), terminal);
    for (const auto& note : plans.notes) out += entry("note", note, terminal);
    if (!explain) return out;
    out += "\n" + terminal.paint(fmt::format("Why plan 1: {}", label_of(best.config)), Tone::strong) + "\n";
    out += steps_text(best.derivation, terminal);
    if (explanations.empty()) return out;
    out += "\n" + terminal.paint("From the roof to the prediction, plan 1", Tone::strong) + "\n\n"
           + attainability_text(explanations.front().attainability, std::nullopt, terminal);
    std::vector<NamedPlan> named;
    for (const AttentionPlan& plan : plans.plans)
        named.push_back({label_of(plan.config), plan.prediction.time_us, why_behind(best, plan)});
    return out + runners_up_text(named, explanations, terminal);
}

}  // namespace rooftile
