// What an operator costs a thread for one element.
#pragma once

#include <optional>

#include "rooftile/expression/element.hpp"

namespace rooftile {

struct GraphNode;

/// Instructions of one element in our own device functions (kernels/expression/math.cuh), a lane each.
struct OpCost {
    double issue = 0;  ///< issue slots, those of the units below among them
    double mufu = 0;   ///< of the special function unit
    double alu = 0;    ///< of the integer and logic pipe: comparisons, selections, conversions, logic
    OpCost& operator+=(OpCost o) {
        issue += o.issue;
        mufu += o.mufu;
        alu += o.alu;
        return *this;
    }
    friend OpCost operator*(double n, OpCost c) { return {n * c.issue, n * c.mufu, n * c.alu}; }
};

/// A dropout's mask and its product where a thread makes `blocks` masks of eight elements an element, and takes `together` of
/// them at once, counted in the machine code of kernels/expression/dropout.cuh.
constexpr OpCost dropout_cost(double blocks, int together) {
    // Seven rounds of Philox, each two products and two exclusive ors, and two words of keys, loaded for two blocks; folding every
    // other word, comparison, select, product.
    constexpr double rounds = 7, block_elements = 8;
    // A thread's elements are no whole block: four comparisons, and choices between words.
    const double choices = together < block_elements ? (together + 7.0) / together : 0;
    return {blocks * 4.5 * rounds + 3.5 + choices, 0, blocks * 2 * rounds + 2 + choices};
}

/// Read off the machine code for sm_90 of a kernel that applies the function to 16 elements, less that of one which
/// only adds.
struct OperatorCost {
    OpCost fp32{.issue = 1};
    std::optional<OpCost> fp16{}, bf16{};  ///< where a result of that type asks for less
    std::optional<OpCost> score{};         ///< of its function for scores
    double issue_per_operand = 0;          ///< of a row operation: weights
    /// Where the second operand is a number in the expression, and the operator is a kernel of its own.
    OpCost (*of_number)(double second) = nullptr;
};

/// Of a node's operation on one element of its (first) operand, in a kernel whose outputs ask for `precision`
/// (precision_of()); a row operation's passes over the row together.
OpCost cost_of(const GraphNode& node, Element precision);
/// Of a node of a score before a softmax.
OpCost score_cost_of(const GraphNode& node);
/// Widening one element after a load, or narrowing it for a store.
OpCost conversion_cost(Element element);

}  // namespace rooftile
