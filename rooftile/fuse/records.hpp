// What documents say of a fused expression, its launch, its resources and its prediction.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Without `op`.
Record problem_record(const ExpressionGraph& problem);
Record config_record(const FusePlan& plan);
Record resources_record(const FuseResources& resources);
Record prediction_record(const FusePrediction& prediction);
/// `fused`, `unfused` and `operators`; `fused` is unknown where nothing is planned.
Record totals_record(const std::optional<FuseTotals>& fused, const FuseTotals& unfused,
                     const std::vector<FuseOperator>& operators);

}  // namespace rooftile
