// A layer verified and timed on the GPU.
#pragma once

#include <memory>

#include "rooftile/layer/measured.hpp"
#include "rooftile/measure/options.hpp"

namespace rooftile {

/// Runs a layer of that kind by kernels that are planned for the planner's machine, and holds the last of the graph's layers against
/// fp64. Where that is right and `options.time` asks for it, times the layer and each of its kernels in interleaved rounds; where
/// `options.counters` does, counts both afterwards. `gpu` is told what ran it.
/// Throws RequestError where a part cannot be run, Error(no_gpu, compile_failed, gpu_failed, interrupted).
MeasuredLayer measure_layer(LayerPlanner& planner, const LayerModel& model, std::int64_t layer,
                            const LayerStep& step, const MeasureOptions& options, RunningGpu& gpu);

}  // namespace rooftile
