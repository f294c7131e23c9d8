// The steps of a derivation that choose: tile, warpgroups, schedule, cluster, residency, order.
#pragma once

#include "rooftile/plan/gemm_derivation.hpp"
#include "rooftile/plan/steps.hpp"

namespace rooftile {

/// Appends one step for every parameter that the search settled, with what decided it.
void write_choices(const GemmContext& context, const Kept& kept, Derivation& steps);

}  // namespace rooftile
