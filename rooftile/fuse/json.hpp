// Fused problems and plans in JSON, for documents that speak of them.
#pragma once

#include "rooftile/fuse/plan.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

Json problem_json(const ExpressionGraph& problem);
Json config_json(const FusePlan& plan);
Json resources_json(const FuseResources& resources);

}  // namespace rooftile
