// What a terminal shows of a measured GEMM beyond what every operation has.
#pragma once

#include <string>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The steps from the roof to the measured time, joules, and what the miss goes with, where they were asked for.
std::string gemm_measured_text(const Measurement& row, const Terminal& terminal);

}  // namespace rooftile
