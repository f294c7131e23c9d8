// Why a fused kernel's launch is what it is, step by step [M20-M24, M43].
#pragma once

#include <vector>

#include "rooftile/fuse/search.hpp"
#include "rooftile/core/derivation.hpp"

namespace rooftile {

/// The steps of one candidate, in the order in which a reader needs them.
std::vector<Step> fuse_derivation(const Machine& machine, const FuseHardware& hw,
                                  const ExpressionGraph& graph, const Program& program,
                                  const FuseCandidate& candidate, const std::vector<UnfusedOp>& ops,
                                  double unfused_seconds);

}  // namespace rooftile
