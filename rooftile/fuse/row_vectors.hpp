// How rows lie among the aligned vectors of their tensors: what search, model, source and launch of row kernels all count.
#pragma once

#include <cstdint>

#include "rooftile/fuse/program.hpp"

namespace rooftile {

/// Whether rows begin and end within vectors of `vector_width` elements. Kernels then take aligned vectors all the same, and
/// leave out what of a row's first and last one belongs to its neighbours (kernels/fuse/row_span.cuh).
bool rows_off_vectors(const Program& program, int vector_width);

/// Vectors of `vector_width` elements in which some of a row lies: of the row with most and with fewest.
std::int64_t max_row_vectors(const Program& program, int vector_width);
std::int64_t min_row_vectors(const Program& program, int vector_width);

/// Vectors of all rows where a kernel goes over them without regard to rows, as point-wise ones do: the last may be short.
std::int64_t vectors_of_all(const Program& program, int vector_width);

/// Bytes that the address of a tensor of `element` must be a multiple of, where vectors have `vector_width` elements: an
/// access, or where rows lie off vectors a whole vector, of which no part may lie in another page.
int vector_alignment(const Program& program, int vector_width, Element element);

}  // namespace rooftile
