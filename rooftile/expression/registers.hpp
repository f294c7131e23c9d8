// What an expression's values take of a thread's registers where they are computed statement by statement.
#pragma once

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Of one element: the most values that are needed at once, inputs and the last result left out.
int values_at_once(const ExpressionGraph& graph);

/// How many of its operators are functions, each computed in steps with constants and terms of its own: no single instruction, no choice, no cast.
int functions_of(const ExpressionGraph& graph);

}  // namespace rooftile
