// What a simulated L2 saw of a chain: hit rates by tensor, all in all and over time.
#pragma once

#include <string>

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// A table of tensors; `plan` has a traffic.
std::string chain_simulation_text(const PlanSet& plans, const Plan& plan, const Terminal& terminal);
Record chain_simulation_record(const ChainTraffic& traffic);
/// Hit rates between samples over the steps of tiles, a line a tensor, and the share of steps whose operands both hit.
std::string chain_simulation_svg(const ChainProblem& problem, const ChainPlan& plan);

}  // namespace rooftile
