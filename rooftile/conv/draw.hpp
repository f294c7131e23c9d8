// Convolutions by a law, and what figures of many are ordered by.
#pragma once

#include "rooftile/conv/problem.hpp"
#include "rooftile/core/draw.hpp"
#include "rooftile/core/random.hpp"

namespace rooftile {

DrawLaw conv_law(const DrawRequest& request);
ConvProblem drawn_conv(Random& random, const DrawRequest& request = {});
ProblemTraits conv_traits(const ConvProblem& problem);

}  // namespace rooftile
