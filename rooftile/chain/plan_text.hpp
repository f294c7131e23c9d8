// A chain's plans as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/report/plan_page.hpp"

namespace rooftile {

std::string label_of(const ChainConfig& config);
/// "65536x1024x4096 gelu".
std::string short_name(const ChainProblem& problem);
std::string chain_heading_text(const ChainProblem& problem, std::string_view machine_id, std::string_view machine_name,
                               const Terminal& terminal);
PlanPage chain_page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal);

}  // namespace rooftile
