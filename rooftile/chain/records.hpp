// A chain's values as documents show them.
#pragma once

#include <span>

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

Record problem_record(const ChainProblem& problem);
Record config_record(const ChainPlan& plan);
Record resources_record(const ChainPlan& plan);
Record prediction_record(const ChainPrediction& prediction);
/// `parts`: the products' plans; none of form on_chip.
Demand chain_demand(const Machine& machine, const ChainPlan& plan, std::span<const Plan> parts);

}  // namespace rooftile
