// Convolutions as the stations see them: the plan is that of the product that one is.
#pragma once

#include "rooftile/conv/depthwise.hpp"
#include "rooftile/conv/direct.hpp"
#include "rooftile/conv/problem.hpp"
#include "rooftile/conv/stem.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

const Operation& conv_operation();

/// `request` of a set of plans.
struct ConvRequest {
    Own product{};
    DirectRequest direct{};
    StemRequest stem{};
    DepthwiseRequest depthwise{};
    int top = 8;
    std::string fixed{}, fixed_of_direct{};  ///< a flag of the product's plan, or a direct one's, that was given
};

/// What a plan keeps of its own: the product's plan, or that of a direct convolution.
struct ConvPlan {
    std::optional<Plan> product{};
    std::optional<DirectPlan> direct{};
    std::string arch{};  ///< of the machine that it was made for
};

}  // namespace rooftile
