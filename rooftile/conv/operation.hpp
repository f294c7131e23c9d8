// Convolutions as the stations see them: the plan is that of the product that one is.
#pragma once

#include "rooftile/conv/direct.hpp"
#include "rooftile/conv/problem.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

const Operation& conv_operation();

/// What a plan keeps of its own: the product's plan, or that of a direct convolution.
struct ConvPlan {
    std::optional<Plan> product{};
    std::optional<DirectPlan> direct{};
    std::string arch{};  ///< of the machine that it was made for
};

}  // namespace rooftile
