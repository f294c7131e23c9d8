#include "rooftile/gemm/measurement_text.hpp"

#include "rooftile/gemm/ablation_text.hpp"

namespace rooftile {

std::string gemm_measured_text(const Measurement& m, const Terminal& terminal) {
    const GemmMeasured* measured = gemm_measured(m);
    if (!measured) return {};
    const bool valid = why_no_result(m).empty() && m.time_us;
    std::string out;
    if (measured->ablation)
        out += "\n  " + terminal.paint("What the miss goes with", Tone::strong) + "\n\n"
               + ablation_text(m, *measured->ablation, valid, terminal);
    return out;
}

}  // namespace rooftile
