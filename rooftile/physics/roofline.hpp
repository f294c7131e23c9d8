// A plan under its roofs: FLOP and bytes at each level of memory, and the rates that bound them [M1].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// The matrix units at one clock.
struct RooflinePeak {
    std::string name;  ///< "datasheet", "predicted_clock"
    double flops = 0;  ///< a second
    double clock_hz = 0;
    std::string source;
};

struct RooflineLevel {
    std::string name;  ///< "dram", "l2", "shared"
    double bytes = 0;  ///< of a launch, as planned
    double bytes_per_second = 0;
    Input bandwidth;  ///< the machine's number
};

struct Roofline {
    double flop = 0;  ///< of the matrix units, of a launch
    std::vector<RooflinePeak> peaks;
    std::vector<RooflineLevel> levels;  ///< outermost first
};

/// Empty where no matrix unit works, or its rate is unknown; levels whose rate or bytes are unknown are left out.
std::optional<Roofline> roofline_of(const Demand& demand, const Machine& machine, const PredictedRun& run);

}  // namespace rooftile
