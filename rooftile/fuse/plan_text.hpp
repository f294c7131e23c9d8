// Fused plans as tables for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rooftile/fuse/plan.hpp"
#include "rooftile/report/explanation_text.hpp"

namespace rooftile {

/// "a CTA of 256 a row, 2 vectors of 8, registers": a configuration in a few words.
std::string label_of(const FuseConfig& config);

/// The expression, its tensors and the machine.
std::string fuse_heading_text(const ExpressionGraph& problem, std::string_view machine_id,
                              std::string_view machine_name, const Terminal& terminal);

/// The chain's operators one by one, their sum, and the fused kernel beside it [M24].
std::string fuse_counting_text(const std::vector<FuseOperator>& operators, const FuseTotals& unfused,
                               const FuseTotals& fused, const Terminal& terminal);

/// Heading, counting, table of the plans, what is unknown; with `explain` every step that led to plan 1, how its time
/// comes about and why the others are behind it, as far as `explanations` of all plans, or none, say.
std::string plan_text(const FusePlans& plans, bool explain, std::span<const Explanation> explanations,
                      const Terminal& terminal);

}  // namespace rooftile
