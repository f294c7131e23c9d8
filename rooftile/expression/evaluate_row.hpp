// Row and whole reductions in fp64 with their error bounds; a part of evaluate().
#pragma once

#include <cstdint>
#include <vector>

#include "rooftile/expression/bounded.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// The operation of `n` on rows of `columns` elements; operands behind the first are weights of a row. `out` may
/// hold anything; its memory is used again.
BoundedTensor evaluate_rows(const GraphNode& n, const std::vector<const BoundedTensor*>& operands,
                            std::int64_t columns, BoundedTensor out = {});

/// What a row operation knows beside its row.
struct RowOperands {
    double epsilon = 0;
    const std::vector<const BoundedTensor*>& tensors;  ///< the row's own, then weights
};

// What row operators mean; the rows of the operators name these. `out` takes a value, or one an element of the row.
void bounded_softmax(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_log_softmax(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_layernorm(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_rmsnorm(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_row_sum(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_row_mean(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_row_max(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_row_argmax(const BoundedRow& row, const RowOperands& operands, Bounded* out);
void bounded_row_logsumexp(const BoundedRow& row, const RowOperands& operands, Bounded* out);

}  // namespace rooftile
