// One fused problem measured on a readied GPU. For rooftile/measure's own sources.
#pragma once

#include <string>
#include <vector>

#include "rooftile/measure/bench.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/device/chain.hpp"

namespace rooftile {

/// A task with its kernels and those of its operators one by one.
struct PreparedFuse {
    FuseTask task;
    std::vector<FuseOutcome> kernels;
    std::vector<UnfusedKernel> chain;
    std::vector<FuseOutcome> chain_kernels;
    std::string chain_missing;  ///< why the chain cannot run; then it is empty
    double seconds = 0;
};

/// Verifies and times: fills the rows of `shape`, which are there already. `machine`: of the plans. What the
/// GPU refuses throws Error(gpu_failed).
void measure_shape(Bench& bench, FuseShapeRun& shape, PreparedFuse& prepared, const Machine& machine);

/// What `plan`'s instructions take at `clock_mhz`; empty unless they are what binds it.
std::optional<double> issue_roof_us(const FusePlan& plan, const Machine& machine, double clock_mhz);

}  // namespace rooftile
