// Measured rows of one problem for a terminal: a table of all where there are several, then each by itself.
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/counters.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

/// What a row counts per second: FLOP where the operation counts or predicts any, else bytes.
struct Rate {
    std::optional<double> measured, predicted;
    std::string_view unit;
};
Rate rate_of(const Measurement& m) {
    const Record prediction = m.plan.operation->prediction_record(m.plan);
    if (m.tflops || find(prediction, "tflops"))
        return {m.tflops, find_as<double>(prediction, "tflops"), "TFLOP/s"};
    return {m.gbytes_per_s, find_as<double>(prediction, "gbytes_per_s"), "GB/s"};
}

/// The rate of the same work in another time.
std::string rate_text(const Measurement& m, std::optional<double> time_us) {
    const Rate rate = rate_of(m);
    if (!rate.measured || !m.time_us || !time_us || *time_us <= 0) return "?";
    return number_text(*rate.measured * *m.time_us / *time_us);
}

std::string predicted_rate_text(const Measurement& m) {
    if (m.time_us) return rate_text(m, m.plan.time_us);
    const Rate rate = rate_of(m);
    return rate.predicted ? number_text(*rate.predicted) : "?";
}

std::string time_or_unknown(const std::optional<double>& us) { return us ? time_text(*us) : std::string("?"); }
std::string bound_text(const Plan& plan) { return plan.bound ? std::string(name_of(*plan.bound)) : "?"; }
std::string interval_text(double low, double high) {
    return fmt::format("{} to {}", time_text(low), time_text(high));
}
std::string interval_text(const Measurement& m) {
    return m.time_us_low && m.time_us_high ? interval_text(*m.time_us_low, *m.time_us_high) : std::string();
}
/// "96.9 % interval": how often it holds the true median, of the row where that is the least.
std::string interval_title(std::span<const Measurement> rows) {
    std::optional<double> least;
    for (const Measurement& m : rows)
        if (m.interval_coverage) least = std::min(least.value_or(1), *m.interval_coverage);
    return least ? percent_text(*least) + " interval" : "interval";
}
std::string roof_text(const Measurement& m) {
    return m.roof_fraction ? fmt::format("{} of the {} roof", percent_text(*m.roof_fraction), m.roof) : "";
}

/// "1.025  (1.024 to 1.026)"
std::string ratio_text(double value, double low, double high) {
    return fmt::format("{}  ({} to {})", number_text(value), number_text(low), number_text(high));
}

std::string plans_table(const std::vector<Measurement>& rows, const Terminal& terminal) {
    Table table({{"#"},
                 {"plan", Align::left, 3},
                 {"time"},
                 {interval_title(rows), Align::left, 4},
                 {std::string(rate_of(rows.front()).unit)},
                 {"of its roof"},
                 {"predicted"},
                 {"bound", Align::left, 2},
                 {"registers", Align::right, 5},
                 {"right", Align::left}});
    for (const Measurement& m : rows) {
        const bool valid = why_no_result(m).empty() && m.time_us.has_value();
        const Verification& v = m.verified;
        table.row({{std::to_string(m.plan.rank)},
                   {m.plan.operation->label(m.plan)},
                   {valid ? time_text(*m.time_us) : "-", Tone::strong},
                   {valid ? interval_text(m) : "-"},
                   {valid ? rate_text(m, m.time_us) : "-"},
                   {valid && m.roof_fraction ? percent_text(*m.roof_fraction) : "-", Tone::strong},
                   {time_or_unknown(m.plan.time_us)},
                   {bound_text(m.plan)},
                   {std::to_string(m.registers)},
                   {v.ok()        ? fmt::format("yes, {} of its bound", percent_text(v.max_error))
                    : v.wrong()   ? "NO"
                    : m.built     ? "not checked"
                                  : "not built",
                    v.ok() ? Tone::good : Tone::bad}});
    }
    return table.text(terminal);
}

/// Prediction, ours and the baselines, one line each.
std::string times_table(const Measurement& m, bool valid, const Terminal& terminal) {
    Table table({{"", Align::left},
                 {"time"},
                 {interval_title(std::span(&m, 1)), Align::left, 2},
                 {std::string(rate_of(m).unit)},
                 {"", Align::left, 1}});
    table.row({{"predicted"},
               {time_or_unknown(m.plan.time_us)},
               {},
               {predicted_rate_text(m)},
               {m.plan.bound ? fmt::format("bound: {}", name_of(*m.plan.bound)) : ""}});
    if (valid)
        table.row({{"measured", Tone::strong},
                   {time_text(*m.time_us), Tone::strong},
                   {interval_text(m)},
                   {rate_text(m, m.time_us), Tone::strong},
                   {roof_text(m)}});
    for (const LaunchVariant& v : m.variants)
        if (valid && v.time_us)
            table.row({{v.name},
                       {time_text(*v.time_us)},
                       {v.time_us_low && v.time_us_high ? interval_text(*v.time_us_low, *v.time_us_high) : ""},
                       {rate_text(m, v.time_us)},
                       {"predicted " + time_or_unknown(v.predicted_us)}});
    for (const Baseline& b : m.baselines)
        if (b.same_work && b.time_us)
            table.row({{b.name}, {time_text(*b.time_us)}, {}, {rate_text(m, b.time_us)}, {b.form}});
    std::string out = table.text(terminal);
    for (const Baseline& b : m.baselines)
        if (!b.same_work && b.time_us)
            out += fmt::format("  {} takes {}{}\n", b.name, time_text(*b.time_us),
                               b.form.empty() ? "" : fmt::format(" ({})", b.form));
    if (!m.baseline_missing.empty())
        out += fmt::format("  no baseline: {}\n", displayable(m.baseline_missing, terminal.utf8));
    return out;
}

std::string ratios_text(const Measurement& m) {
    std::string out;
    const double low = m.time_us_low.value_or(*m.time_us), high = m.time_us_high.value_or(*m.time_us);
    if (m.plan.time_us)
        out += fmt::format("  measured / predicted time    {}\n",
                           ratio_text(*m.time_us / *m.plan.time_us, low / *m.plan.time_us, high / *m.plan.time_us));
    for (const Baseline& b : m.baselines) {
        if (!b.same_work || !b.time_us) continue;
        out += fmt::format("  speed / {:<20} ", b.name);
        if (b.ratio)
            out += fmt::format("{}, {} interval, in the same rounds\n",
                               ratio_text(b.ratio->median, b.ratio->low, b.ratio->high), percent_text(b.ratio->coverage));
        else out += ratio_text(*b.time_us / *m.time_us, *b.time_us / high, *b.time_us / low) + "\n";
        if (b.ratio && !b.ratio_note.empty()) out += fmt::format("  {} {}\n", b.name, b.ratio_note);
        for (const LaunchVariant& v : m.variants)
            if (b.ratio && v.ratio)
                out += fmt::format("    {:<26} {}\n", v.name, ratio_text(v.ratio->median, v.ratio->low, v.ratio->high));
    }
    return out;
}

/// What was compared, in the order in which it is.
std::string proof_text(const Verification& v) {
    std::string out;
    const auto add = [&](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
    if (v.exact) add(fmt::format("integers {}", *v.exact ? "equal bit for bit" : "not shown equal"));
    if (v.random) add(fmt::format("random data: largest error {} of its bound", number_text(v.max_error, 3)));
    if (v.shifted) add(fmt::format("rows far from 0 {}", *v.shifted ? "within their bound" : "not shown right"));
    if (v.special) add(fmt::format("NaN and Inf {}", *v.special ? "where they must be" : "not shown right"));
    if (v.timed) add(fmt::format("timed launches {}", *v.timed ? "left the same bits" : "left other bits"));
    if (v.guards) add(fmt::format("guards {}", *v.guards ? "untouched" : "touched"));
    if (v.checked_elements > 0) add(fmt::format("{} elements compared", v.checked_elements));
    if (v.undecided_elements > 0) add(fmt::format("{} undecided", v.undecided_elements));
    return out.empty() ? "nothing was compared" : out;
}

std::string explanation_text(const Measurement& m, bool valid, const Terminal& terminal) {
    std::string out;
    const auto titled = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) out += "\n  " + terminal.paint(title, Tone::strong) + "\n\n" + text;
    };
    titled(valid ? "From the roof to the measurement" : "From the roof to the prediction",
           attainability_text(m.explanation->attainability, valid ? m.time_us : std::nullopt, terminal));
    if (!m.explanation->energy) return out;
    const Energy& e = *m.explanation->energy;
    std::string energy = energy_text(e, terminal);
    if (const auto joules = measured_joules(m); joules && valid) {
        energy += fmt::format("  measured {} J", number_text(*joules));
        if (e.total && e.joules_per_tflop) energy += fmt::format(", {} J/TFLOP", number_text(*joules * *e.joules_per_tflop / *e.total));
        energy += "\n";
    }
    titled("Energy of one launch, predicted", energy);
    return out;
}

std::string state_text(const Measurement& m) {
    std::string state;
    if (m.sm_clock_mhz) state += fmt::format("SM clock {} MHz", number_text(*m.sm_clock_mhz));
    if (m.power_w) state += fmt::format("{}{} W", state.empty() ? "" : ", ", number_text(*m.power_w));
    return state.empty() ? state : "  " + state + "\n";
}

std::string counted_text(const Measurement& m, const Terminal& terminal) {
    const Record prediction = m.plan.operation->prediction_record(m.plan);
    const auto bytes = [&](std::string_view key) { return find_as<std::int64_t>(prediction, key); };
    CountedBaseline beside;
    for (const Baseline& b : m.baselines)
        if (b.counters) beside = {b.name, b.counters};
    return "\n" + counters_text(*m.counters, {bytes("dram_bytes"), bytes("l2_bytes")}, terminal, beside);
}

std::string block_text(const Measurement& m, const Terminal& terminal) {
    const std::string invalid = why_no_result(m);
    const bool valid = invalid.empty() && m.time_us.has_value();
    std::string out = terminal.paint(m.plan.operation->label(m.plan), Tone::strong)
                      + fmt::format("  {}, {} samples\n\n", name_of(m.mode), m.samples);
    out += times_table(m, valid, terminal) + "\n";
    if (valid) out += ratios_text(m);
    else
        out += "  " + terminal.paint("no result", Tone::bad) + ": "
               + wrapped(displayable(invalid.empty() ? "not timed" : invalid, terminal.utf8), terminal.prose() - 13, 13)
               + "\n";
    out += state_text(m) + verification_text(m, terminal);
    if (m.counters) out += counted_text(m, terminal);
    if (m.show_derivation) out += steps_text(m.plan.derivation, m.plan.operation->config_record(m.plan), terminal);
    if (m.explanation) out += explanation_text(m, valid, terminal);
    return out + m.plan.operation->measured_text(m, terminal);
}

}  // namespace

std::string verification_text(const Measurement& m, const Terminal& terminal) {
    constexpr int indent = 18;
    const Verification& v = m.verified;
    std::string out = "  verified  "
                      + terminal.paint(v.ok() ? "PASS" : v.wrong() ? "FAIL" : "none", v.ok() ? Tone::good : Tone::bad)
                      + "  " + wrapped(proof_text(v), terminal.prose() - indent, indent) + "\n";
    if (!v.failure.empty())
        out += std::string(indent, ' ')
               + wrapped(displayable(v.failure, terminal.utf8), terminal.prose() - indent, indent) + '\n';
    return out;
}

std::string measurement_text(const DocumentContext& context, const std::vector<Measurement>& rows,
                             const Terminal& terminal) {
    const Plan& first = rows.front().plan;
    std::string out =
        first.operation->heading(first.problem, context.machine_id,
                                 context.gpu ? context.gpu->gpu : context.machine_name, terminal);
    if (rows.size() > 1) out += "\n" + plans_table(rows, terminal);
    for (const Measurement& m : rows) out += "\n" + block_text(m, terminal);
    return out;
}

}  // namespace rooftile
