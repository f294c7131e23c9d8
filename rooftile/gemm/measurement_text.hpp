// Measured beside predicted beside the vendor's library, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/report/timings.hpp"

namespace rooftile {

/// One block a measurement: times with their 95 % intervals, ratios to the prediction and to cuBLASLt,
/// clock, power, PASS or FAIL. What is no result shows its reason in place of its figures.
std::string measurement_text(const DocumentContext& context, const std::vector<Measurement>& measurements,
                             const Terminal& terminal);

}  // namespace rooftile
