// What a sweep draws of attention, and what its figures are ordered by.
#pragma once

#include "rooftile/attention/problem.hpp"
#include "rooftile/core/draw.hpp"
#include "rooftile/core/random.hpp"

namespace rooftile {

/// Throws RequestError where what is asked for cannot be drawn.
DrawLaw attention_law(const DrawRequest& request);
AttentionProblem drawn_attention(Random& random, const DrawRequest& request = {});
ProblemTraits attention_traits(const AttentionProblem& problem);

}  // namespace rooftile
