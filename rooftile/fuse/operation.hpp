// Fused expressions as the stations see them, and from their typed plans to theirs.
#pragma once

#include <variant>

#include "rooftile/core/operation.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

const Operation& fuse_operation();

/// What derive() came to, for stations.
PlanSet fuse_plan_set(std::variant<FusePlans, FuseInfeasible> outcome);

/// A typed plan as every station reads it. The second shares the problem with other plans.
Plan any_plan(FusePlan plan);
Plan any_plan(FusePlan plan, const Problem& problem);

}  // namespace rooftile
