// Fused plans as tables for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rooftile/fuse/plan.hpp"
#include "rooftile/report/plan_page.hpp"

namespace rooftile {

/// "a CTA of 256 a row, 2 vectors of 8, registers": a configuration in a few words.
std::string label_of(const FuseConfig& config);

/// The expression, its tensors and the machine.
std::string fuse_heading_text(const ExpressionGraph& problem, std::string_view machine_id,
                              std::string_view machine_name, const Terminal& terminal);

/// The chain's operators one by one, their sum, and the fused kernel beside it [M24].
std::string fuse_counting_text(const std::vector<FuseOperator>& operators, const FuseTotals& unfused,
                               const FuseTotals& fused, const Terminal& terminal);

PlanPage fuse_page(const PlanSet& plans, const std::vector<FuseOperator>& operators, const FuseTotals& unfused, const FuseTotals& fused,
                   const Terminal& terminal);

}  // namespace rooftile
