// Fused kernels measured: verified against fp64, timed in one run beside a copy of as many bytes and beside
// the chain's operators as kernels of their own.
#pragma once

#include <vector>

#include "rooftile/measure/fuse_row.hpp"
#include "rooftile/measure/measure.hpp"
#include "rooftile/plan/fuse_plan.hpp"

namespace rooftile {

/// Compiles, verifies and times `plans` of one problem on a GPU, interleaved with the baselines. A plan that
/// does not compile or is wrong is a row without a time. Throws Error(no_gpu, gpu_failed, interrupted).
FuseRun measure(const std::vector<FusePlan>& plans, const Machine& machine, const MeasureOptions& options);

}  // namespace rooftile
