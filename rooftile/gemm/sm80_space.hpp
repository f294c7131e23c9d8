// The candidates of sm80_gemm, their constraints, and the kernel configuration of a plan.
#pragma once

#include "kernels/gemm/sm80_gemm_config.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct Sm80GemmFamily {
    /// Takes every candidate past the constraints of the instruction, the copies, threads and registers. Fixed values
    /// of the request are taken even where the search would skip them.
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const;
    /// The same for one candidate, whose tile it completes.
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;
};

/// The kernel's template parameter for a configuration. Of the grids that the warps can stand in over
/// the tile it has the one that reads least from shared memory; 0 warps where there is none. Operands and C are taken
/// to begin at multiples of 16 B.
Sm80GemmConfig sm80_config(const GemmProblem& problem, const GemmConfig& choices);

}  // namespace rooftile
