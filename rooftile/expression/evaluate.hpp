// What an expression's result must be: every value in fp64, with a bound on how far a computation in fp32 may
// lie from it (running error analysis). One thread does it: for
// tests. Verification on a GPU does the same there (rooftile/measure/expression_reference.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/expression/meaning.hpp"
#include "rooftile/expression/bounded.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// All outputs of `graph` on `inputs`, which hold the tensors' exact values in the order of
/// ExpressionGraph::inputs. Row and whole reductions as PyTorch treats NaN and Inf.
std::vector<BoundedTensor> evaluate(const ExpressionGraph& graph,
                                    std::span<const std::vector<double>> inputs);

/// How what an operator brings together lies in its operand: elements, from the first of one to the first of the next, and from
/// one element to the next. Of columns these are the rows of the operand's transpose.
struct RowsIn {
    std::int64_t columns, pitch, step;
};
RowsIn rows_in(Op op, const Shape& shape);

/// `graph` with `count` rows instead of its own, all outer axes as one, for work on a part of them.
/// Empty where rows are not alone: a reduction of columns or of everything, or a tensor that some outer axes share.
std::optional<ExpressionGraph> rows_of(const ExpressionGraph& graph, std::int64_t count);

/// Whether `got`, read from a result of `element`, is `expected` within its error and the rounding of the
/// result's type. NaN must be NaN; Inf must be Inf of that sign unless undecided.
inline bool agrees(double got, const Bounded& expected, Element element) {
    return judge(got, expected, element).ratio <= 1;
}

/// The last node that reads each node; of what is asked for, the number of nodes.
std::vector<std::size_t> last_readers(const ExpressionGraph& graph);
/// A point-wise node's call but for its operands and its index.
ElementCall element_call(const GraphNode& node, Element precision);

}  // namespace rooftile
