// The steps of a derivation that choose what sm90_gemm alone has: parts of K, overlapped epilogue, epilogue tiles, caching, launch.
#pragma once

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/derivation.hpp"

namespace rooftile {

/// Whether clusters take tiles from a counter: the rule of the step "dynamic_scheduler". False where a number is unknown.
bool schedules_dynamically(const GemmContext& context, const Kept& kept);

void write_sm90_derivation(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                           Derivation& steps);

}  // namespace rooftile
