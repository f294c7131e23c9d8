// Why a GEMM's plan is what it is and why the others are behind it, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "rooftile/gemm/explanation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Every step of one plan, in the order of its constraints.
std::string derivation_text(const GemmPlan& plan, const Terminal& terminal);

/// One line a plan behind the first: what it lost by. Empty where there is one plan alone.
/// `explanations`, of all plans or none, say of the first two what would let them win.
std::string runners_up_text(const Plans& plans, const std::vector<Explanation>& explanations,
                            const Terminal& terminal);

/// What `other` lost to `best` by, as far as the model tells them apart.
std::string why_behind(const GemmPlan& best, const GemmPlan& other);

}  // namespace rooftile
