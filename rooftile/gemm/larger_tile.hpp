// The next larger tile, and what keeps a plan from it [M8, M52].
#pragma once

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/derivation.hpp"

namespace rooftile {

/// Appends the step "next_larger_tile": the tile whose shorter side is twice as long, its FLOP a loaded byte, and what forbids it or puts it behind.
/// Where registers forbid it, "larger_by_threads" and "larger_in_shared" weigh the ways round: more threads with fewer sums each, and part of C in
/// shared memory.
///
/// Of the first plan before that "next_tile_m" and "next_tile_n": the next tile that the instruction has, one side longer, and what it takes or
/// what forbids it.
void write_larger_tile(const GemmContext& context, const Kept& kept, Derivation& steps);

}  // namespace rooftile
