// A chain taken apart: every operation as an expression of its own, as a framework runs it [M24, M30].
#pragma once

#include <cstddef>
#include <vector>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// One operation; its inputs are the operands' tensors, its only output the result in the promoted type.
struct UnfusedKernel {
    ExpressionGraph problem;
    std::vector<int> operands;  ///< nodes of the chain, one an input
    int node = 0;               ///< of the chain: the result
    int output = -1;            ///< of the chain that this copies; else none
};

/// The first output that is `node`; none: -1.
int first_output(const ExpressionGraph& chain, int node);
/// Whether an output is a copy: of an input, or of what is an earlier output already.
bool is_copy(const ExpressionGraph& chain, std::size_t output);

/// In the order of the chain; then a copy for every output that is one.
std::vector<UnfusedKernel> unfused_kernels(const ExpressionGraph& chain);

}  // namespace rooftile
