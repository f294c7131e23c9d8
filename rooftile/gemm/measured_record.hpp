// What --ablate adds to the documents of measured GEMMs.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/gemm/measurement.hpp"

namespace rooftile {

Record measured_record(const GemmMeasured& measured);

}  // namespace rooftile
