// Fused expressions drawn by law, and what figures of many of them are ordered by.
#pragma once

#include "rooftile/core/draw.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Throws RequestError of base addresses off those of allocations, which no problem can say yet.
DrawLaw fuse_law(const DrawRequest& request);
ExpressionGraph drawn_expression(Random& random);
/// By the law "columns".
ExpressionGraph drawn_columns(Random& random);
ProblemTraits fuse_traits(const ExpressionGraph& problem);

}  // namespace rooftile
