// What --explain, --energy and --ablate add to the documents of GEMMs.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/gemm/measurement.hpp"

namespace rooftile {

/// What was asked for of a plan beyond it.
Record explanation_record(const Explanation& explanation);
/// The same of a measured row, with what stands beside its measured time.
Record measured_record(const Measurement& row, const GemmMeasured& measured);

}  // namespace rooftile
