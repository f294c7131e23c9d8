// Why a plan is as it is, step by step.
#pragma once

#include <vector>

#include "rooftile/attention/hardware.hpp"
#include "rooftile/attention/model.hpp"
#include "rooftile/attention/plan.hpp"

namespace rooftile {

std::vector<Step> attention_derivation(const Machine& machine, const AttentionHardware& hw, const AttentionProblem& problem,
                                       const AttentionConfig& config, const AttentionTime& time);

}  // namespace rooftile
