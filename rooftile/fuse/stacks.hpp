// Point-wise threads whose vectors lie one below the other: their search counts on it, their source is written so.
#pragma once

#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Whether 32 bits count the vectors of `vector_width` elements of a tensor, with room for a grid's step.
bool counts_in_32_bits(const Program& program, int vector_width);

/// Whether a thread takes its `vectors_per_thread` vectors from as many rows, at one place along the row: vectors that all rows
/// share it then loads and widens once. Of a program with such vectors, whose rows are that many times a whole number and a
/// warp's vectors long at least; a CTA a piece.
bool stacks(const Program& program, const FuseConfig& config);

}  // namespace rooftile
