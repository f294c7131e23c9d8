// GEMMs drawn by law, and what figures of many of them are ordered by.
#pragma once

#include "rooftile/core/draw.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// Throws RequestError of a law that is none of gemm's; the text names them.
DrawLaw gemm_law(const DrawRequest& request);
GemmProblem drawn_gemm(Random& random, const DrawRequest& request);
ProblemTraits gemm_traits(const GemmProblem& problem);

}  // namespace rooftile
