// The ladder measured: six rungs and the planned kernel, each verified, all timed in one run beside cuBLASLt.
#pragma once

#include <optional>

#include "rooftile/gemm/ladder_row.hpp"
#include "rooftile/gemm/device/measure.hpp"

namespace rooftile {

/// `machine` is what the predictions are made for; `plan`, where there is one, the planned kernel of
/// `problem`. A rung that cannot compute the problem or run on the GPU is a row that says so; a wrong result
/// is a row without a time. Rungs on CUDA cores stand apart from the others in each round: a launch of theirs
/// may last longer than the blocks of all others together. Throws Error(no_gpu, gpu_failed, interrupted);
/// Error(compile_failed) where nothing compiles.
LadderRun measure_ladder(const GemmProblem& problem, const Machine& machine,
                         const std::optional<GemmPlan>& plan, const MeasureOptions& options);

}  // namespace rooftile
