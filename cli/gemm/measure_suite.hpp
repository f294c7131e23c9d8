// `measure gemm` of a single problem, a suite and the ladder.
#pragma once

#include <vector>

#include "cli/measure_flags.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile::cli {

/// Checked. Throws RequestError.
MeasureOptions gemm_measure_options(const MeasureFlags& flags, const Invocation& invocation);
std::vector<GemmPlan> typed_plans(const PlanSet& plans);

/// `measure gemm --suite`: every problem of the file, one row a plan appended to --out as each is done.
int measure_gemm_suite(const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
