// From the text of an expression and its tensors to a graph.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// A tensor in memory, as declared.
struct TensorDeclaration {
    std::string name;
    Element element = Element::fp32;
    Shape shape{};
};

/// Reads "x:bf16[16384,4096]"; "s:fp32[]" has no axes. Throws RequestError that says what was expected.
TensorDeclaration tensor_declaration(std::string_view text);

/// "y = gelu(layernorm(x, gamma, beta) + residual)" on `tensors`: the graph, or ExpressionError with the
/// column. A name that a statement gives and no later one reads is an output.
ExpressionGraph expression_graph(std::string_view text, std::span<const TensorDeclaration> tensors);

}  // namespace rooftile
