// Fused plans on machines with other numbers.
#pragma once

#include <span>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// Each keeps its launch: what a CTA does, and how many of them an SM has. A grid that stays follows the SMs.
Predictor fuse_predictor(std::span<const Plan> plans);

}  // namespace rooftile
