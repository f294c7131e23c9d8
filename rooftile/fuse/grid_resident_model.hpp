// Rows that are all resident in the grid, each with CTAs of its own, and wait in L2 for their next pass [M20-M22]:
// pure functions. NaN stands for an unknown number.
#pragma once

#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {

/// A launch, as far as time depends on it.
struct GridResidentLaunch {
    double vectors_per_thread = 1, vector_width = 1, threads = 0;
    double cluster = 1;      ///< CTAs that share a row
    double again_bytes = 0;  ///< of an element: the tensors that every pass reads
    double held_share = 0;   ///< of them that waits in shared memory
    double rows_an_sm = 1;   ///< whose CTAs are gathered: what rows share comes once for all of them
    double together = 1;     ///< iterations of the first pass that a thread asks for at once
};

/// One pass after the other, all CTAs in step: the first at the rate of DRAM, the next at that of L2 or of what DRAM
/// has to do beside, each no faster than its instructions; a reduction in device memory after each that reduces. L2
/// holds what it has room for: each line is read by one SM and lies in one half, so all of L2 counts; a pass that goes
/// the other way than the one before finds what came last.
/// The warps of an SM load, compute and load again without a word to each other: mean value analysis.
FuseFlow grid_resident_flow(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                            const FusedBytes& bytes, const GridResidentLaunch& launch);

}  // namespace rooftile
