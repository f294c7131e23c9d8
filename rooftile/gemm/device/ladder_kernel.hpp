// The rungs of the GEMM ladder as code of GEMM kernels: compiled, loaded and launched as any other.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// The source of one rung on 16-bit `type` for a GPU of `arch` ("sm_90").
Source ladder_source(Rung rung, Type type, std::string_view arch);

/// Why no GPU of `arch` ("sm_80") can run that rung; empty where it can: mma.sync on bf16 came with sm_80,
/// and wgmma is sm_90's alone.
std::string arch_obstacle(Rung rung, std::string_view arch);

/// What TMA needs to know of A, B and C for rungs 4-6 (C: 5 and 6).
struct LadderTensors {
    TensorMapRequest a, b, c;
};
LadderTensors ladder_tensors(Rung rung, Type type, const GemmShape& shape, const GemmPointers& pointers);

/// CTAs of a launch: one a tile; of a persistent rung no more than fit at once, in whole clusters.
std::unique_ptr<const GemmCode> rung_code(Rung rung, const GemmProblem& problem, std::string_view arch);

/// Of `plan`, whose problem it computes, nothing else counts. Throws Error(compile_failed).
Kernel compile_rung(Rung rung, const GemmPlan& plan, std::string_view arch);

}  // namespace rooftile
