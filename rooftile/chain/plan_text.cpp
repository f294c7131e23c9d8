#include "rooftile/chain/plan_text.hpp"

#include <fmt/core.h>

#include "rooftile/report/explain.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

const ChainPlan& chain_of(const Plan& plan) { return plan.own.as<ChainPlan>(); }

std::string bytes_or_unknown(const std::optional<std::int64_t>& bytes) { return bytes ? scaled_text(double(*bytes), "B") : "?"; }

std::string tile_text(const ChainConfig& c) {
    if (c.form == ChainForm::on_chip) return fmt::format("{}x{}, {} stages{}", c.tile.tile_m, c.tile.tile_ff, c.tile.stages, c.tile.resident ? " that stay" : "");
    std::string out;
    for (const ChainProduct& p : c.products)
        out += (out.empty() ? "" : " + ") + fmt::format("{}x{}x{}{}", p.tile_m, p.tile_n, p.tile_k, p.reverse ? " back" : "");
    return out;
}

Table plan_table(const PlanSet& plans) {
    Table table({{"#", Align::right, 0, true}, {"form", Align::left}, {"tiles", Align::left, 3}, {"DRAM", Align::right, 0, true},
                 {"of the least", Align::right, 2, true}, {"H", Align::right, 2, true}, {"both hit", Align::right, 5, true}, {"predicted", Align::right, 0, true},
                 {"TFLOP/s", Align::right, 4, true}, {"limited by", Align::left, 1, true}, {"buildable", Align::left, 2}});
    for (const Plan& any : plans.plans) {
        const ChainPlan& plan = chain_of(any);
        const ChainPrediction& p = plan.prediction;
        const Tone tone = any.rank == 1 ? Tone::strong : Tone::plain;
        std::optional<std::int64_t> h;
        for (const ChainTensorTraffic& t : p.traffic.tensors)
            if (t.name == "H") h = t.all();
        table.row({{std::to_string(any.rank), tone},
                   {std::string(name_of(plan.config.form)), tone},
                   {tile_text(plan.config)},
                   {bytes_or_unknown(p.dram_bytes)},
                   {p.dram_bytes ? number_text(double(*p.dram_bytes) / double(p.dram_lower_bound_bytes), 3) : "?"},
                   {p.traffic.tensors.empty() ? "?" : h ? scaled_text(double(*h), "B") : "none"},
                   {p.both_hit_share ? percent_text(*p.both_hit_share) : "?"},
                   {time_or_unknown(p.time_us), tone},
                   {p.tflops ? number_text(*p.tflops) : "?", tone},
                   {p.bound ? std::string(name_of(*p.bound)) : "?"},
                   {any.buildable ? "yes" : "no", any.buildable ? Tone::good : Tone::faint}});
    }
    return table;
}

std::string why_behind(const Plan& best, const Plan& other) {
    if (!best.time_us || !other.time_us) return "an unknown number leaves it without a time";
    const double slower = *other.time_us / *best.time_us - 1;
    const auto moved = [](const Plan& plan) { return chain_of(plan).prediction.dram_bytes.value_or(0); };
    const double more = double(moved(other) - moved(best));
    const std::string bytes = more == 0 ? "as many bytes" : scaled_text(std::abs(more), "B") + (more > 0 ? " more" : " less") + " to and from DRAM";
    if (slower < 0.0005) return "as fast by the model, " + bytes;
    return percent_text(slower) + " slower, " + bytes;
}

/// Joules of a launch of each form.
std::string energy_table(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) {
    const auto joules = [](const std::optional<double>& x) { return x ? number_text(*x) : "?"; };
    Table table({{"form", Align::left}, {"products"}, {"shared"}, {"DRAM"}, {"static"}, {"joules"}, {"W"}});
    for (std::size_t i = 0; i < explanations.size(); ++i) {
        const Energy& e = *explanations[i].energy;
        table.row({{std::string(name_of(chain_of(plans.plans[i]).config.form))}, {joules(e.matrix)}, {joules(e.fill)}, {joules(e.dram)}, {joules(e.idle)},
                   {joules(e.total), i == 0 ? Tone::strong : Tone::plain}, {joules(e.watts)}});
    }
    std::string out = table.text(terminal);
    if (!explanations.front().energy->total) out += "  unknown: " + joined(explanations.front().energy->unknown) + "\n";
    return out;
}

/// Why the form that is ahead is: beside two kernels, or beside the next where it is they.
std::string why_ahead(const PlanSet& plans) {
    const Plan& best = plans.plans.front();
    const bool plain = chain_of(best).config.form == ChainForm::two_kernels;
    const Plan* other = nullptr;
    for (const Plan& plan : plans.plans)
        if (&plan != &best && plan.time_us && (plain ? !other : chain_of(plan).config.form == ChainForm::two_kernels)) other = &plan;
    if (!other || !best.time_us) return {};
    return fmt::format("{} is {}; {} is limited by {}, {} by {}", name_of(chain_of(*other).config.form), why_behind(best, *other), name_of(chain_of(best).config.form),
                       best.bound ? name_of(*best.bound) : "?", name_of(chain_of(*other).config.form), other->bound ? name_of(*other->bound) : "?");
}

}  // namespace

std::string label_of(const ChainConfig& c) { return fmt::format("{} {}", name_of(c.form), tile_text(c)); }

std::string short_name(const ChainProblem& p) {
    return fmt::format("{}x{}x{} {}{}{}", p.m, p.d, p.ff, name_of(p.act), p.residual ? " residual" : "",
                       p.type == Type::bf16 ? "" : " fp16");
}

std::string chain_heading_text(const ChainProblem& p, std::string_view machine_id, std::string_view machine_name,
                               const Terminal& terminal) {
    std::string out = terminal.paint(fmt::format("chain {} × {} × {}", p.m, p.d, p.ff), Tone::strong)
                      + fmt::format("  Y = {}{}(X W1^T) W2^T, {}, fp32 accumulate\n", p.residual ? "X + " : "", name_of(p.act), chain_type_name(p.type));
    out += fmt::format("{}, at least {} to move; H is {}\n", scaled_text(p.flops(), "FLOP"), scaled_text(double(p.compulsory_bytes()), "B"),
                       scaled_text(double(p.h_bytes()), "B"));
    return out
           + fmt::format("on {}  {}\n", terminal.paint(machine_id, Tone::strong), terminal.paint(machine_name, Tone::plain));
}

PlanPage chain_page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) {
    const ChainPlan& best = chain_of(plans.plans.front());
    const ChainPrediction& p = best.prediction;
    const std::vector<Step>& steps = plans.plans.front().derivation;
    PlanPage page{.heading = chain_heading_text(best.problem, plans.machine_id, plans.machine_name, terminal),
                  .table = plan_table(plans)};
    page.why = {{fmt::format("why {}", name_of(best.config.form)), why_ahead(plans)}};
    std::string tensors;
    for (const ChainTensorTraffic& t : p.traffic.tensors) tensors += fmt::format("{}{} {}", tensors.empty() ? "" : ", ", t.name, scaled_text(double(t.all()), "B"));
    page.facts.push_back({"DRAM, plan 1", tensors});
    if (p.dram_sum_of_bounds_bytes)
        page.facts.push_back({"least", fmt::format("the chain {}, its two products apart {}", scaled_text(double(p.dram_lower_bound_bytes), "B"),
                                                   scaled_text(double(*p.dram_sum_of_bounds_bytes), "B"))});
    page.walls = {{"partial sums of Y", limit_of(steps, "partial_sum_bytes")},
                  {"registers", limit_of(steps, "registers_needed")},
                  {"shared memory", limit_of(steps, "shared_bytes")}};
    for (const Plan& plan : plans.plans) page.behind.push_back(why_behind(plans.plans.front(), plan));
    if (!explanations.empty() && explanations.front().energy) page.energy = energy_table(plans, explanations, terminal);
    return page;
}

}  // namespace rooftile
