// Fused kernels measured: verified against fp64, timed in one run beside a copy of as many bytes and beside
// the chain's operators as kernels of their own.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rooftile/fuse/measurement.hpp"
#include "rooftile/measure/options.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Compiles, verifies and times `plans` of one problem on a GPU, interleaved with the baselines. A plan that
/// does not compile or is wrong is a row without a time. Throws Error(no_gpu, gpu_failed, interrupted).
FuseRun measure(const std::vector<FusePlan>& plans, const Machine& machine, const MeasureOptions& options);

/// One problem to measure: its plans, best first, all buildable; or none and why.
struct FuseTask {
    ExpressionGraph problem;
    std::vector<FusePlan> plans;
    std::optional<FuseInfeasible> infeasible;
    std::vector<SuiteLayer> layers;  ///< for the rows
};

/// What became of a task.
struct FuseShapeRun {
    FuseTask task;
    FuseRun run;                 ///< one row a plan, always; gpu, driver and nvrtc are empty
    double seconds = 0;          ///< all of it, waiting for plans and compilers included
    std::optional<Error> error;  ///< why the GPU did not run it to its end: out of memory
};

/// As MeasureEvents.
struct FuseEvents {
    std::function<std::optional<FuseTask>()> next;
    std::function<void(const RunningGpu&)> started;
    std::function<bool(FuseShapeRun)> done;
    std::function<void(const std::vector<Timing>&)> ended = {};
};

/// Measures one problem after the other in one continuous run, as measure_each() of matrix products does.
/// `machine` is what the operators one by one are planned for.
void measure_each(const FuseEvents& events, const Machine& machine, const MeasureOptions& options);

}  // namespace rooftile
