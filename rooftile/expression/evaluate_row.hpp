// Row and whole reductions in fp64 with their error bounds; a part of evaluate().
#pragma once

#include <vector>

#include "rooftile/expression/evaluate.hpp"

namespace rooftile {

/// The operation of `n` on rows of `columns` elements; operands behind the first are weights of a row. `out` may
/// hold anything; its memory is used again.
BoundedTensor evaluate_rows(const GraphNode& n, const std::vector<const BoundedTensor*>& operands,
                            std::int64_t columns, BoundedTensor out = {});

}  // namespace rooftile
