// Plans as a table for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/plan_page.hpp"

namespace rooftile {

/// "grouped 8", or "row" where the order has no groups.
std::string order_text(Order order, int group);

/// "128x256x64, 4 stages, 2 warpgroups, cooperative": a configuration in a few words.
std::string label_of(const GemmConfig& config);

/// The problem and the machine in three lines: sizes and types, work and compulsory bytes, the GPU.
std::string heading_text(const GemmProblem& problem, std::string_view machine_id,
                         std::string_view machine_name, const Terminal& terminal);

/// `tensor_peak`: FLOP/s of the machine's fastest instruction, where the plans' is another.
PlanPage gemm_page(const PlanSet& plans, std::optional<double> tensor_peak, const Terminal& terminal);

}  // namespace rooftile
