// Convolutions as the stations see them: the plan is that of the product that one is.
#pragma once

#include "rooftile/conv/problem.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

const Operation& conv_operation();

/// What a plan keeps of its own: the product's.
struct ConvPlan {
    Plan product;
};

}  // namespace rooftile
