// The candidates of sm80_few_gemm, their constraints, and the kernel configuration of a plan.
#pragma once

#include "kernels/gemm/sm80_few_gemm_config.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct Sm80FewFamily {
    /// Takes every candidate past the constraints of the instruction, the copies, threads and registers. Fixed values
    /// of the request are taken even where the search would skip them.
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request, GemmVisitor& visitor) const;
    /// The same for one candidate, whose tile it completes.
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;
};

/// Whether A and B are read by wider copies elsewhere: every row of both begins at a multiple of 16 B.
bool rows_on_chunks(const GemmProblem& problem);

/// The kernel's template parameter for a configuration.
Sm80FewConfig sm80_few_config(const GemmProblem& problem, const GemmConfig& choices);

}  // namespace rooftile
