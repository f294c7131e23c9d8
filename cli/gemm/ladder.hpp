// `measure gemm --ladder`: the six rungs and the planned kernel, predicted and measured; `report ladder`:
// their table from a recorded run.
#pragma once

#include "cli/measure_flags.hpp"

namespace rooftile::cli {

int measure_ladder(const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
