// Plans as a table for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// "grouped 8", or "row" where the order has no groups.
std::string order_text(Order order, int group);

/// "128x256x64, 4 stages, 2 warpgroups, cooperative": a configuration in a few words.
std::string label_of(const GemmConfig& config);

/// The problem and the machine in three lines: sizes and types, work and compulsory bytes, the GPU.
std::string heading_text(const GemmProblem& problem, std::string_view machine_id,
                         std::string_view machine_name, const Terminal& terminal);

/// Heading, table of the plans, rejected candidates by reason, what is unknown, notes; with `explain`
/// also every step that led to plan 1, how its time comes about and why the others are behind it; with the
/// plans' energies, where `explanations` have them, what plan 1 costs. `explanations` are of all plans, or
/// none.
std::string plan_text(const Plans& plans, bool explain, const Terminal& terminal,
                      std::span<const Explanation> explanations = {});

}  // namespace rooftile
