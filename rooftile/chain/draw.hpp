// Chains by the law of draws.
#pragma once

#include "rooftile/chain/problem.hpp"
#include "rooftile/core/draw.hpp"
#include "rooftile/core/random.hpp"

namespace rooftile {

DrawLaw chain_law(const DrawRequest& request);
ChainProblem drawn_chain(Random& random);
ProblemTraits chain_traits(const ChainProblem& problem);

}  // namespace rooftile
