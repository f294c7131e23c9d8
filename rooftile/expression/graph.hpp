// What an expression computes: operations on tensors, each with its shape and PyTorch's type, operands
// before what uses them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/expression/element.hpp"
#include "rooftile/expression/operators.hpp"

namespace rooftile {

/// Extents, outermost first; rows lie densely one after the other. Empty: one number without axes.
using Shape = std::vector<std::int64_t>;
std::int64_t elements_of(const Shape& shape);
/// Extents that no index counts: 2^48 elements or more; of an empty tensor those of its other extents.
bool too_large(const Shape& shape);
inline constexpr double max_elements = 281474976710656.0;   // 2^48: bytes of any type stay exact in a double
std::string text_of(const Shape& shape);                    ///< "[16384,4096]"

struct GraphNode {
    Op op = Op::number;
    std::vector<int> operands{};  ///< indices of earlier nodes
    Element element = Element::fp32;
    Shape shape{};
    double value = 0;                    ///< of a number itself; of others the first attribute: epsilon, p
    bool integer = false;                ///< of a number: written without a point
    std::uint64_t seed = 0, offset = 0;  ///< of dropout: the other attributes
    std::string name{};                  ///< of an input; of others the name that a statement gave
    int column = 0;                      ///< in the expression's text; 0: none
};

struct GraphOutput {
    std::string name;
    int node = 0;
};

/// Operations in an order in which they can be computed, and what of them is asked for.
struct ExpressionGraph {
    std::vector<GraphNode> nodes;
    std::vector<int> inputs;  ///< in the order of their declaration
    std::vector<GraphOutput> outputs;
    std::string text;  ///< the expression, written out from the nodes
};

/// The type whose precision the outputs ask of the functions on the way to them: bf16 or fp16 where all are of
/// it, else fp32. kernels/expression/math.cuh has cheaper ones for the former.
Element precision_of(const ExpressionGraph& graph);
/// The same of each node: where bf16 is asked for, a value that is added to others, or that a function takes, is as precise as for fp16. In
/// 1 + tanh(x) the sum may be as small as what tanh is off by.
std::vector<Element> precisions_of(const ExpressionGraph& graph);

/// Bytes of a node's tensor; of a number 0: it stands in the code.
std::int64_t bytes_of(const GraphNode& node);

/// "gelu(x + bias)": a node with everything it is made of, as an expression; cut short after `most`
/// characters.
std::string expression_of(const ExpressionGraph& graph, int node, std::size_t most = 2000);

}  // namespace rooftile
