// Why a GEMM's plan is what it is and why the others are behind it, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/explanation_text.hpp"

namespace rooftile {

/// Every step of one plan, in the order of its constraints.
std::string derivation_text(const GemmPlan& plan, const Terminal& terminal);

/// What `other` lost to `best` by, as far as the model tells them apart.
std::string why_behind(const GemmPlan& best, const GemmPlan& other);
/// The plans with what each lost to the first by.
std::vector<NamedPlan> named_plans(const Plans& plans);

}  // namespace rooftile
