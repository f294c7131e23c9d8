// What an expression's values take of a thread's registers where they are computed statement by statement.
#pragma once

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Of one element: the most values that are needed at once, inputs and the last result left out.
int values_at_once(const ExpressionGraph& graph);

/// Whether some operator is a function, computed in steps with constants and terms of its own: no single instruction, no choice, no cast.
bool calls_functions(const ExpressionGraph& graph);

}  // namespace rooftile
