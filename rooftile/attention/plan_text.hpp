// Attention's plans as tables for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rooftile/attention/plan.hpp"
#include "rooftile/report/plan_page.hpp"

namespace rooftile {

/// "128x176, 2 stages, 2 warpgroups in turns": a configuration in a few words.
std::string label_of(const AttentionPlan& plan);
/// "2x16 heads, 4096x4096, dim 128, causal, bf16".
std::string short_name(const AttentionProblem& problem);
std::string attention_heading_text(const AttentionProblem& problem, std::string_view machine_id,
                                   std::string_view machine_name, const Terminal& terminal);
PlanPage attention_page(const PlanSet& plans, const Terminal& terminal);

}  // namespace rooftile
