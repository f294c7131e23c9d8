#include "rooftile/report/explanation_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr int name_columns = 16, number_columns = 13, share_columns = 9;
constexpr int remark_column = 2 + name_columns + 2 * number_columns + share_columns + 2;

std::string us_text(std::int64_t ns) { return fmt::format("{:.3f}", double(ns) / 1000); }

/// Microseconds to the nanosecond, so that the column adds up as it stands.
std::string row_text(const std::string& name, std::int64_t time_ns, std::optional<std::int64_t> cost_ns,
                     std::int64_t whole_ns, const std::string& remark, const Terminal& terminal,
                     Tone tone = Tone::plain) {
    const std::string head =
        fmt::format("{:<{}}{:>{}}", name, name_columns, us_text(time_ns), number_columns);
    std::string cost;
    if (cost_ns)
        cost =
            fmt::format("{:>{}}{:>{}}", (*cost_ns < 0 ? "" : "+") + us_text(*cost_ns), number_columns,
                        fmt::format("{:+.1f} %", 100.0 * double(*cost_ns) / double(whole_ns)), share_columns);
    const std::string out = "  " + terminal.paint(head, tone) + cost;
    if (remark.empty()) return out + "\n";
    const std::string shown = displayable(remark, terminal.utf8);
    // Beside the numbers where there is room for them, else in lines of its own.
    const int room = terminal.prose() - remark_column;
    if (room < 24) return out + "\n      " + wrapped(shown, terminal.prose() - 6, 6) + "\n";
    const int gap = remark_column - 2 - columns_of(head) - columns_of(cost);
    return out + std::string(std::size_t(std::max(gap, 2)), ' ') + wrapped(shown, room, remark_column) + "\n";
}

std::string remark_of(const RoofStep& step) {
    std::string out;
    for (const Input& input : step.inputs)
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", input.name,
                           input.value ? input_text(*input.value, input.unit) : "unknown");
    if (!step.note.empty()) out += (out.empty() ? "" : "; ") + step.note;
    return out;
}

/// "wins if wgmma.turn falls below 120 clk (800)": the nearest few.
std::string wins_if_text(const std::vector<Counterfactual>& wins_if, std::size_t most) {
    if (wins_if.empty())
        return fmt::format("no single hardware number, changed {} to {} times, makes it win",
                           min_change, max_change);
    std::string out = "wins if ";
    for (std::size_t i = 0; i < std::min(most, wins_if.size()); ++i) {
        const Counterfactual& c = wins_if[i];
        const std::string unit = c.unit == "1" ? "" : c.unit;
        out += fmt::format("{}{} {} {} (here {})", i > 0 ? ", or " : "", c.key,
                           c.threshold < c.value ? "falls below" : "rises above",
                           with_unit(number_text(c.threshold), unit), input_text(c.value, unit));
    }
    return out;
}

/// `share` of a bar's full width, from `begin` on.
std::string bar(double begin, double end, int width, const Terminal& terminal) {
    const int from = int(std::lround(begin * width)), to = std::max(from + 1, int(std::lround(end * width)));
    std::string out(std::size_t(from), ' ');
    for (int i = from; i < to; ++i) out += terminal.sign("█", "#");
    return out + std::string(std::size_t(std::max(0, width - to)), ' ');
}

}  // namespace

std::string roof_step_words(const std::string& step) {
    if (step == "shared") return "shared memory";
    if (step == "l2") return "L2";
    if (step == "dram") return "DRAM";
    if (step == "fill") return "pipeline fill";
    if (step == "packing") return "packing of operands";
    std::string words = step;
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
}

std::string roof_bars_text(const std::vector<RoofStep>& steps, const Terminal& terminal) {
    constexpr double least = 0.01;
    constexpr int numbers = 12, share = 9;
    if (steps.empty()) return {};
    const double whole = double(steps.back().time_ns);
    const int width = std::clamp(terminal.prose() - 2 - name_columns - numbers - share - 4, 10, 50);
    std::string out;
    std::int64_t rest = 0;
    const auto row = [&](const std::string& name, double from_ns, double to_ns, bool step) {
        const double low = std::min(from_ns, to_ns), high = std::max(from_ns, to_ns), us = (step ? to_ns - from_ns : to_ns) / 1000;
        out += fmt::format("  {:<{}}{:>{}}{:>{}}  {}", name, name_columns, (step && us >= 0 ? "+" : "") + time_text(us), numbers,
                           step ? fmt::format("{:+.1f} %", 100 * (to_ns - from_ns) / whole) : "", share, bar(low / whole, high / whole, width, terminal));
        out.erase(out.find_last_not_of(' ') + 1);
        out += "\n";
    };
    row(roof_step_words(steps[0].name), 0, double(steps[0].time_ns), false);
    double at = double(steps[0].time_ns);
    for (std::size_t i = 1; i < steps.size(); ++i) {
        if (std::abs(double(steps[i].cost_ns)) < least * whole) {
            rest += steps[i].cost_ns;
            continue;
        }
        row(roof_step_words(steps[i].name), at, at + double(steps[i].cost_ns), true);
        at += double(steps[i].cost_ns);
    }
    if (rest != 0) row("the rest", at, at + double(rest), true);
    row("prediction", 0, whole, false);
    return out;
}

std::string attainability_text(const std::vector<RoofStep>& steps, std::optional<double> measured_us,
                               const Terminal& terminal) {
    if (steps.empty()) return {};
    const std::int64_t predicted = steps.back().time_ns;
    std::string out =
        terminal.paint(fmt::format("  {:<{}}{:>{}}{:>{}}{:>{}}  {}", "step", name_columns, "time us",
                                   number_columns, "costs us", number_columns, "", share_columns, "from"),
                       Tone::faint)
        + "\n";
    std::string free;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const RoofStep& step = steps[i];
        const std::string words = roof_step_words(step.name);
        if (i > 0 && step.cost_ns == 0 && step.note.empty()) {
            free += (free.empty() ? "" : ", ") + words;
            continue;
        }
        out += row_text(words, step.time_ns, i > 0 ? std::optional(step.cost_ns) : std::nullopt, predicted,
                        remark_of(step), terminal);
    }
    out += row_text("prediction", predicted, std::nullopt, predicted, "", terminal, Tone::strong);
    if (measured_us) {
        const std::int64_t measured = std::llround(*measured_us * 1000);
        out += row_text("measured", measured, measured - predicted, predicted, "unexplained", terminal,
                        Tone::strong);
    }
    if (!free.empty()) out += "  " + wrapped("cost nothing here: " + free, terminal.prose() - 4, 4) + "\n";
    return out;
}

std::string energy_text(const Energy& e, const Terminal& terminal) {
    Table table({{"", Table::Align::left}, {"joules"}, {"share"}, {"from", Table::Align::left, 1}});
    const auto row = [&](const char* name, const std::optional<double>& joules,
                         std::initializer_list<std::string_view> keys) {
        std::string from;
        for (const std::string_view key : keys)
            for (const Input& input : e.inputs)
                if (input.name.starts_with(key))
                    from += (from.empty() ? "" : ", ") + input.name + " "
                            + (input.value ? input_text(*input.value, input.unit) : "unknown");
        table.row({{name},
                   {joules ? number_text(*joules) : "?"},
                   {joules && e.total ? percent_text(*joules / *e.total) : ""},
                   {std::move(from)}});
    };
    const auto has = [&](std::string_view key) {
        return std::ranges::any_of(e.inputs, [&](const Input& input) { return input.name.starts_with(key); });
    };
    if (has("energy.flop.")) row("products", e.matrix, {"energy.flop."});
    if (has("energy.instruction")) row("instructions", e.instructions, {"energy.instruction"});
    if (has("energy.fill")) row(has("energy.flop.") ? "shared memory" : "L2 to SMs", e.fill, {"energy.fill", "energy.shared_read"});
    row("DRAM", e.dram, {"energy.dram"});
    row("static", e.idle, {"power.static"});
    std::string out = table.text(terminal);
    if (!e.total)
        return out + "  total unknown: "
               + wrapped(joined(e.unknown) + ", which `rooftile machine probe` measures", terminal.prose() - 17, 17) + "\n";
    out += fmt::format("  total {} J, {} W on average", number_text(*e.total), number_text(*e.watts));
    if (e.joules_per_tflop) out += fmt::format(", {} J/TFLOP", number_text(*e.joules_per_tflop));
    return out + "\n";
}

std::string min_energy_text(std::span<const NamedPlan> plans, std::span<const Explanation> explanations,
                            const Terminal& terminal) {
    const auto total = [](const Explanation& e) {
        return e.energy && e.energy->total ? *e.energy->total : INFINITY;
    };
    const auto least = std::min_element(explanations.begin(), explanations.end(),
                                        [&](const auto& x, const auto& y) { return total(x) < total(y); });
    if (least == explanations.end() || std::isinf(total(*least))) return {};
    const auto index = std::size_t(least - explanations.begin());
    std::string text = fmt::format("the least of the {} plans kept", explanations.size());
    if (index > 0)
        text = fmt::format("least of the {} plans kept: plan {}, {}: {} J, {} less, and {} slower", explanations.size(),
                           index + 1, plans[index].label, number_text(total(*least)),
                           percent_text(1 - total(*least) / total(explanations.front())),
                           percent_text(*plans[index].time_us / *plans[0].time_us - 1));
    return "  " + wrapped(text, terminal.prose() - 4, 4) + "\n";
}

std::string runners_up_text(std::span<const NamedPlan> plans, std::span<const Explanation> explanations,
                            std::size_t wins_if, const Terminal& terminal) {
    constexpr std::size_t asked = 2;
    if (plans.size() < 2) return {};
    std::string out = "\n" + terminal.paint("Why not the others", Tone::strong) + "\n";
    for (std::size_t i = 1; i < plans.size(); ++i) {
        out += fmt::format("{:>3}. ", i + 1)
               + wrapped(plans[i].label + ": " + plans[i].why_behind, terminal.prose() - 7, 7) + "\n";
        if (i > asked || explanations.empty() || !explanations[i].wins_if) continue;
        out += "       " + wrapped(wins_if_text(*explanations[i].wins_if, wins_if), terminal.prose() - 9, 9) + "\n";
    }
    return out;
}

}  // namespace rooftile
