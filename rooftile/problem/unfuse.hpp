// A chain taken apart: every operation as an expression of its own, as a framework runs it [M24, M30].
#pragma once

#include <vector>

#include "rooftile/problem/graph.hpp"

namespace rooftile {

/// One operation; its inputs are the operands' tensors, its only output the result in the promoted type.
struct UnfusedKernel {
    FuseProblem problem;
    std::vector<int> operands;  ///< nodes of the chain, one an input
    int node = 0;               ///< of the chain: the result
    int output = -1;            ///< of the chain that is a copy of an input; else none
};

/// In the order of the chain; then a copy for every output that is an input.
std::vector<UnfusedKernel> unfused_kernels(const FuseProblem& chain);

}  // namespace rooftile
