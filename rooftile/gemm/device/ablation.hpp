// Which part of a kernel the miss between its predicted and its measured time goes with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace rooftile {

/// A kernel compiled without one part, timed in the same rounds as the whole. It computes nothing, so nothing
/// of it is verified.
struct PartTime {
    Ablation ablated = Ablation::nothing;
    double time_us = 0, time_us_low = 0, time_us_high = 0;  ///< median and its interval
    std::int64_t samples = 0;
    std::optional<double> sm_clock_mhz;
    std::string invalid;  ///< why it was not timed; then its figures are nothing

    // By attribute():
    std::optional<double> predicted_us, predicted_clock_mhz;
    std::optional<double> predicted_at_clock_us;  ///< at the clock that was measured
    /// Of the whole kernel's miss, what goes away with the part: what the part costs beyond what it is
    /// predicted to cost, both at measured clocks. Parts overlap, so these need not add up to the miss.
    std::optional<double> attributed_us;
};

struct AblationStudy {
    std::vector<PartTime> parts;
    std::optional<double> whole_clock_mhz;    ///< predicted, of the whole kernel
    std::optional<double> whole_at_clock_us;  ///< predicted at the clock that was measured
    std::optional<double> miss_us;            ///< of the whole kernel, measured less predicted
    std::optional<double> clock_us;  ///< what of it the clock explains: predicted at the measured one
    /// What most of the miss goes with: "loads", "products", "store", "clock"; "common" where no part takes a
    /// third of it, so that it lies in what all of them share; "none" where there is hardly a miss. Empty:
    /// unknown.
    std::string term;
};

struct Measurement;
class Machine;

/// Fills in the predictions of a row's `ablation`, which has its times, and names the term.
void attribute(AblationStudy& study, const Measurement& row, const Machine& machine);

}  // namespace rooftile
