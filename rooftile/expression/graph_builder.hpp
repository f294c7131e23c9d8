// Makes a graph, operation by operation: checks operands, works out shapes and types, folds what numbers
// alone make. The language and the C++ interface both end here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// What a function takes besides tensors.
struct Attributes {
    double value = 0;  ///< epsilon, p
    std::uint64_t seed = 0, offset = 0;
};

/// Every call throws ExpressionError, with `column` where it is not 0, for what cannot be computed.
class GraphBuilder {
  public:
    static constexpr int max_axes = 8;

    /// A tensor in memory. Extents may be 0; their product stays below 2^48.
    int input(std::string name, Element element, Shape shape, int column = 0);
    int integer(std::int64_t value, int column = 0);
    int number(double value, int column = 0);
    int apply(Op op, const std::vector<int>& operands, const Attributes& attributes = {}, int column = 0);
    int cast(Element to, int operand, int column = 0);
    /// A name for a value, for messages and generated code.
    void name(int node, std::string name);
    void output(std::string name, int node, int column = 0);

    const GraphNode& node(int index) const { return graph_.nodes[std::size_t(index)]; }
    /// What leads to the outputs. Throws where there are none or an input leads to none of them.
    ExpressionGraph take();

  private:
    int add(GraphNode node);
    int fold(Op op, const std::vector<int>& operands, int column);
    Rank rank_of(const GraphNode& node) const;
    Element mixture(const std::vector<int>& operands, std::size_t first = 0) const;
    void check_operands(Op op, const std::vector<int>& operands, int column) const;
    void check_weight(Op op, const GraphNode& row, int weight, int column) const;
    ExpressionGraph graph_;
};

/// The shape of operands together; a missing axis or an extent of 1 stretches. Throws ExpressionError.
Shape broadcast(const Shape& x, const Shape& y, int column = 0);

}  // namespace rooftile
