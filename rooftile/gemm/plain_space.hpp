// The families without TMA and wgmma: cp.async + mma.sync (and its forerunner without cp.async), and
// `generic`, which knows of a machine only its five numbers [M8].
#pragma once

#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct Sm80GemmFamily {
    /// As Sm90GemmFamily's.
    void walk(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
              GemmVisitor& visitor) const;
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate,
                 Footprint& footprint) const;

    static constexpr int working_registers = 40;  ///< addresses, loop state, conversion [M12: 32-40]
};

struct GenericGemmFamily {
    void walk(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
              GemmVisitor& visitor) const;
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate,
                 Footprint& footprint) const;
};

}  // namespace rooftile
