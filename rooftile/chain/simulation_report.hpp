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

}  // namespace rooftile
