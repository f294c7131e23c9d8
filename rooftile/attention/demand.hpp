// An attention plan as work, and its time on machines with other numbers.
#pragma once

#include <span>

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

Demand attention_demand(const Machine& machine, const AttentionPlan& plan);
Predictor attention_predictor(std::span<const Plan> plans);

}  // namespace rooftile
