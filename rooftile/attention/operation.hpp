// Attention as the stations see it.
#pragma once

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

const Operation& attention_operation();
/// A typed plan as the stations take it.
Plan any_plan(AttentionPlan plan, const Problem& problem);
/// What derive() gives, as the stations take it.
PlanSet attention_plan_set(std::variant<AttentionPlans, AttentionInfeasible> outcome);

}  // namespace rooftile
