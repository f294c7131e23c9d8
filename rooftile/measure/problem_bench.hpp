// One problem of any operation measured on a readied GPU. For rooftile/measure's own sources.
#pragma once

#include <vector>

#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile {

/// A kernel with the workspace that it takes, if any; its launches follow each other in one stream.
TensorLaunch launch_of(const CompiledKernel& kernel);

/// Proves every plan's result right, times all of them beside the baselines, then looks at what the timed launches left.
/// Fills the rows of `problem`, which are there already; `kernels` are in their order. What the GPU refuses throws
/// Error(gpu_failed).
void measure_problem(Bench& bench, MeasuredProblem& problem, PreparedTrial& prepared,
                     const std::vector<CompiledOutcome>& kernels);

}  // namespace rooftile
