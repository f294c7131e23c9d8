#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/measurement_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/attainability_text.hpp"
#include "rooftile/gemm/blame_text.hpp"
#include "rooftile/report/counters.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

double tflops_at(const Measurement& m, double time_us) {
    return m.plan.problem.flops().value / time_us / 1e6;
}

/// "1.025  (1.024 to 1.026)": how many times `other` ours is, with the interval of our time alone.
std::string ratio_text(double value, double low, double high) {
    return fmt::format("{}  ({} to {})", number_text(value), number_text(low), number_text(high));
}

/// Prediction, ours and the baselines, one line each.
std::string times_table(const Measurement& m, bool valid, const Terminal& terminal) {
    Table table(
        {{"", Align::left}, {"time"}, {"95 % interval", Align::left, 2}, {"TFLOP/s"}, {"", Align::left, 1}});
    if (auto predicted = m.plan.prediction.time_us)
        table.row(
            {{"predicted"},
             {time_text(*predicted)},
             {},
             {number_text(tflops_at(m, *predicted))},
             {m.plan.prediction.bound ? fmt::format("bound: {}", name_of(*m.plan.prediction.bound)) : ""}});
    else table.row({{"predicted"}, {"?"}, {}, {"?"}, {}});
    if (valid)
        table.row(
            {{"measured", Tone::strong},
             {time_text(m.time_us), Tone::strong},
             {fmt::format("{} to {}", time_text(m.time_us_low), time_text(m.time_us_high))},
             {number_text(m.tflops), Tone::strong},
             {m.roof_fraction ? percent_text(*m.roof_fraction) + " of the roof at the measured clock" : ""}});
    auto baseline = [&](std::string name, std::optional<double> time_us) {
        if (time_us)
            table.row(
                {{std::move(name)}, {time_text(*time_us)}, {}, {number_text(tflops_at(m, *time_us))}, {}});
    };
    baseline("cuBLASLt top-1", m.baselines.cublaslt_top1_us);
    baseline("cuBLASLt best of 8", m.baselines.cublaslt_best_us);
    std::string out = table.text(terminal);
    if (m.baselines.copy_us)
        out += fmt::format("  copying as many bytes takes {}\n", time_text(*m.baselines.copy_us));
    if (!m.baselines.missing.empty())
        out += fmt::format("  no baseline: {}\n", displayable(m.baselines.missing, terminal.utf8));
    return out;
}

std::string ratios_text(const Measurement& m) {
    std::string out;
    if (auto predicted = m.plan.prediction.time_us)
        out += fmt::format(
            "  measured / predicted time    {}\n",
            ratio_text(m.time_us / *predicted, m.time_us_low / *predicted, m.time_us_high / *predicted));
    auto speed = [&](std::string_view name, std::optional<double> theirs) {
        if (theirs)
            out += fmt::format(
                "  speed / {:<20} {}\n", name,
                ratio_text(*theirs / m.time_us, *theirs / m.time_us_high, *theirs / m.time_us_low));
    };
    const Baselines& b = m.baselines;
    speed("cuBLASLt top-1", b.cublaslt_top1_us);
    if (b.cublaslt_ratio && b.cublaslt_ratio_low && b.cublaslt_ratio_high)
        out += fmt::format("  speed / {:<20} {}, in the same rounds\n", "cuBLASLt best of 8",
                           ratio_text(*b.cublaslt_ratio, *b.cublaslt_ratio_low, *b.cublaslt_ratio_high));
    else speed("cuBLASLt best of 8", b.cublaslt_best_us);
    return out;
}

std::string verification_text(const Measurement& m, const Terminal& terminal) {
    constexpr int indent = 18;
    const Verification& v = m.verified;
    const std::string proof =
        fmt::format("integers {}; random data: largest error {} of its bound; NaN and Inf {}",
                    v.exact ? "equal bit for bit" : "not shown equal", number_text(v.max_error, 3),
                    v.special ? "where they must be" : "not shown right");
    std::string out = "  verified  "
                      + terminal.paint(v.ok() ? "PASS" : "FAIL", v.ok() ? Tone::good : Tone::bad) + "  "
                      + wrapped(proof, terminal.prose() - indent, indent) + "\n";
    if (!v.failure.empty())
        out += std::string(indent, ' ')
               + wrapped(displayable(v.failure, terminal.utf8), terminal.prose() - indent, indent) + '\n';
    return out;
}

std::string explanation_text(const Measurement& m, bool valid, const Terminal& terminal) {
    std::string out;
    const auto titled = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) out += "\n  " + terminal.paint(title, Tone::strong) + "\n\n" + text;
    };
    titled(valid ? "From the roof to the measurement" : "From the roof to the prediction",
           attainability_text(m.explanation->attainability, valid ? std::optional(m.time_us) : std::nullopt,
                              terminal));
    if (!m.explanation->energy) return out;
    std::string energy = energy_text(*m.explanation->energy, terminal);
    if (const auto joules = measured_joules(m); joules && valid)
        energy += fmt::format("  measured {} J, {} J/TFLOP\n", number_text(*joules),
                              number_text(*joules / (m.plan.problem.flops().value / 1e12)));
    titled("Energy of one launch, predicted", energy);
    return out;
}

std::string block_text(const Measurement& m, const Terminal& terminal) {
    const std::string invalid = why_no_result(m);
    std::string out = terminal.paint(label_of(m.plan.config), Tone::strong)
                      + fmt::format("  {}, {} samples\n\n", name_of(m.mode), m.samples);
    out += times_table(m, invalid.empty(), terminal) + "\n";
    if (invalid.empty()) out += ratios_text(m);
    else
        out += "  " + terminal.paint("no result", Tone::bad) + ": "
               + wrapped(displayable(invalid, terminal.utf8), terminal.prose() - 13, 13) + "\n";
    std::string state;
    if (m.sm_clock_mhz) state += fmt::format("SM clock {} MHz", number_text(*m.sm_clock_mhz));
    if (m.power_w) state += fmt::format("{}{} W", state.empty() ? "" : ", ", number_text(*m.power_w));
    if (!state.empty()) out += "  " + state + "\n";
    out += verification_text(m, terminal);
    if (m.counters)
        out += "\n"
               + counters_text(*m.counters, {m.plan.prediction.dram_bytes, m.plan.prediction.l2_bytes}, terminal,
                               {"cuBLASLt best of 8", m.baselines.cublaslt_best_counters});
    if (m.explanation) out += explanation_text(m, invalid.empty(), terminal);
    if (m.blame)
        out += "\n  " + terminal.paint("What the miss goes with", Tone::strong) + "\n\n"
               + blame_text(m, invalid.empty(), terminal);
    return out;
}

}  // namespace

std::string measurement_text(const DocumentContext& context, const std::vector<Measurement>& measurements,
                             const Terminal& terminal) {
    if (measurements.empty()) return {};
    std::string out = heading_text(measurements.front().plan.problem, context.machine_id,
                                   context.gpu ? context.gpu->gpu : context.machine_name, terminal);
    for (const Measurement& m : measurements) out += "\n" + block_text(m, terminal);
    return out;
}

}  // namespace rooftile
