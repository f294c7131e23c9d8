// The rungs of the GEMM ladder made runnable: compiled by NVRTC through the cache, loaded, launched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// The source of one rung on 16-bit `type` for a GPU of `arch` ("sm_90").
Source ladder_source(Rung rung, Type type, std::string_view arch);

/// Why no GPU of `arch` ("sm_80") can run that rung; empty where it can: mma.sync on bf16 came with sm_80,
/// and wgmma is sm_90's alone.
std::string arch_obstacle(Rung rung, std::string_view arch);

/// CTAs of a launch: one a tile; of a persistent rung no more than `resident_ctas`, in whole clusters.
/// Throws RequestError where there are 2^31 tiles or more.
int ladder_grid(Rung rung, const GemmProblem& problem, int resident_ctas);

/// What TMA needs to know of A, B and C for rungs 4-6 (C: 5 and 6).
struct LadderTensors {
    TensorMapRequest a, b, c;
};
LadderTensors ladder_tensors(Rung rung, const GemmProblem& problem, const void* a, const void* b,
                             const void* c);

/// One rung in the context that was current at construction. A handle: copies share what is loaded.
class LadderKernel {
  public:
    /// Throws Error(gpu_failed) where the driver refuses it.
    LadderKernel(Rung rung, const CachedCompile& compiled);

    Rung rung() const;
    Function function() const;
    int ctas_per_sm() const;  ///< that the driver lets an SM hold
    /// C = A * B of `problem` in `stream`; neither synchronises nor allocates, and may be captured.
    /// Throws RequestError where obstacle_of(rung, problem) says why, or a pointer is not 16-byte aligned.
    void launch(Stream stream, const void* a, const void* b, void* c, const GemmProblem& problem) const;

  private:
    struct State;
    std::shared_ptr<const State> state_;
};

}  // namespace rooftile
