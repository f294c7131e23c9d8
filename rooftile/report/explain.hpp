// A plan's derivation as a story: every step with its formula, its inputs and the limit it met.
#pragma once

#include <string>

#include "rooftile/plan/plan.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Every step of one plan, in the order of its walls.
std::string derivation_text(const GemmPlan& plan, const Terminal& terminal);

/// One line a plan behind the first: what it lost by. Empty where there is one plan alone.
std::string runners_up_text(const Plans& plans, const Terminal& terminal);

/// What `other` lost to `best` by, as far as the model tells them apart.
std::string why_behind(const GemmPlan& best, const GemmPlan& other);

}  // namespace rooftile
