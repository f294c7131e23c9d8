// The operators of a chain as kernels of their own, each with the launch that would be planned for it, so that
// fused and unfused times come from one model [M24].
#pragma once

#include <vector>

#include "rooftile/fuse/time.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// unfused_time() of `ops`, which are `chain`'s, each longer by what its best launch alone loses to waves, latency
/// and rounds; what has no launch keeps the time without losses. What a launch reads twice is added to its `ops`.
UnfusedTime launched_time(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& chain,
                          std::vector<UnfusedOp>& ops);

}  // namespace rooftile
