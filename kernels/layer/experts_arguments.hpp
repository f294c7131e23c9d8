// What the kernels of kernels/layer/experts.cuh are told; host and device see the same bytes.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

inline constexpr int most_experts_of_lane = 16, most_chosen_experts = 32;  ///< 512 experts in all; a lane keeps one choice

/// Of each token: who computes it, with which weight, and where its row lies among those of all experts. One number a token and choice.
struct ExpertChoices {
    float* weights;
    int* rows;
    int* experts;
    int* offsets;  ///< [experts + 1]: where each expert's rows begin, and the last one's end
};

struct RouteArguments {
    const void* logits;  ///< [tokens, columns]
    void* shared_gate;   ///< [tokens]: the logit behind the experts'; null: there is none
    ExpertChoices to;
    int tokens, columns, experts, chosen;
    bool renormalized;  ///< a token's weights sum up to 1
};

}  // namespace rooftile
