// A planned fused kernel as work.
#pragma once

#include "rooftile/core/demand.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

Demand fuse_demand(const FusePlan& plan);

}  // namespace rooftile
