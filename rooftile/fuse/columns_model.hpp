// Reductions of columns [M20-M22]: how long CTAs take that each go down a part of the rows of a tile: pure functions. NaN stands
// for an unknown number.
#pragma once

#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {

/// A launch, as far as time depends on it.
struct ColumnsLaunch {
    double vectors_per_thread = 1, vector_width = 1, threads = 0;
    double ctas_per_sm = 1;      ///< that can be resident
    double tiles = 1, splits = 1;
    double turns = 1;            ///< of a CTA down its rows
    double useful = 1;           ///< share of the threads' elements that the tensor has
    double gather_turns = 0;     ///< in which the last CTA of a tile takes the others' sums; 0: it is alone
    double partial_bytes = 0;    ///< of all CTAs, written and read again
};

/// Full waves of CTAs and a last one, in each of which an SM's warps wait for memory, compute and stand in DRAM's queue. Behind
/// it the last CTA's threads come together, and where several share a tile, what each leaves, the count, and every turn of what the
/// last one takes.
FuseFlow columns_flow(const FuseHardware& hw, const Program& program, const ProgramWork& work, const FusedBytes& bytes,
                      const ColumnsLaunch& launch);

}  // namespace rooftile
