// How a chain's plan came about, step by step.
#pragma once

#include <vector>

#include "rooftile/chain/hardware.hpp"
#include "rooftile/chain/plan.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

std::vector<Step> chain_derivation(const Machine& machine, const ChainHardware& hw, const ChainPlan& plan);

}  // namespace rooftile
