#include "rooftile/gemm/measurement_text.hpp"

#include <fmt/core.h>

#include "rooftile/gemm/ablation_text.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

std::string explanation_text(const Measurement& m, const Explanation& explanation, bool valid,
                             const Terminal& terminal) {
    std::string out;
    const auto titled = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) out += "\n  " + terminal.paint(title, Tone::strong) + "\n\n" + text;
    };
    titled(valid ? "From the roof to the measurement" : "From the roof to the prediction",
           attainability_text(explanation.attainability, valid ? m.time_us : std::nullopt, terminal));
    if (!explanation.energy) return out;
    std::string energy = energy_text(*explanation.energy, terminal);
    if (const auto joules = measured_joules(m); joules && valid)
        energy += fmt::format("  measured {} J, {} J/TFLOP\n", number_text(*joules),
                              number_text(*joules / (gemm_plan(m).problem.flops().value / 1e12)));
    titled("Energy of one launch, predicted", energy);
    return out;
}

}  // namespace

std::string gemm_measured_text(const Measurement& m, const Terminal& terminal) {
    const GemmMeasured* measured = gemm_measured(m);
    if (!measured) return {};
    const bool valid = why_no_result(m).empty() && m.time_us;
    std::string out;
    if (measured->explanation) out += explanation_text(m, *measured->explanation, valid, terminal);
    if (measured->ablation)
        out += "\n  " + terminal.paint("What the miss goes with", Tone::strong) + "\n\n"
               + ablation_text(m, *measured->ablation, valid, terminal);
    return out;
}

}  // namespace rooftile
