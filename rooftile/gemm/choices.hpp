// The steps of a derivation that choose: tile, warpgroups, schedule, cluster, residency, order, stores,
// caching.
#pragma once

#include "rooftile/gemm/derivation.hpp"
#include "rooftile/core/derivation.hpp"

namespace rooftile {

/// Sets how L2 is to keep A, B and C: as the request says, else by the rule of the step "evict_first".
void set_cache_policies(const GemmContext& context, GemmConfig& config);

/// Appends one step for every parameter that the search settled, with what decided it.
void write_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps);

}  // namespace rooftile
