// What --explain, --energy and --blame add to the documents of GEMMs.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// What was asked for of a plan beyond it.
Record explanation_record(const Explanation& explanation);
/// Adds it, and what stands beside the measured time, to a measured row. `valid`: the row is a result.
void add_explanation(Json& row, const Measurement& measurement, bool valid);

}  // namespace rooftile
