// The document `rooftile/plan/1` of a fused expression.
#pragma once

#include <variant>

#include "rooftile/fuse/plan.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// Where nothing fits: the same document with empty `plans` and `infeasible`.
Json plan_document(const DocumentContext& context, const std::variant<FusePlans, FuseInfeasible>& outcome);

Json problem_json(const FuseProblem& problem);
Json config_json(const FusePlan& plan);
Json resources_json(const FuseResources& resources);

}  // namespace rooftile
