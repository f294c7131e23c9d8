// Rows that pass through a ring of chunks in shared memory, while CTAs stay [M20-M22]: pure functions. NaN
// stands for an unknown number.
#pragma once

#include "rooftile/model/fuse_launch.hpp"

namespace rooftile {

/// A launch, as far as time depends on it. One CTA an SM.
struct RingLaunch {
    double lanes = 0;    ///< threads of a CTA that compute
    double cluster = 1;  ///< CTAs that share a row
    double slots = 1;    ///< chunks of all full tensors in a CTA's shared memory
    double chunks = 1;   ///< of a CTA's part of a row
    double chunk_bytes = 0;
    bool kept = false;    ///< what all rows share lies in shared memory
    bool far = false;     ///< the CTAs are no cluster: they meet in device memory
    double clusters = 1;  ///< of the grid; all work at once
};

/// DRAM's time at the copy's rate, less what CTAs lose that walk; times the rows of the busiest cluster over
/// the average; longer as what a CTA does for a row, one thing after the other, comes near the row's DRAM
/// time, with the wait for a chunk where slots are returned too late for it. Around it the first chunk's way
/// in, and the last row's meeting and result.
FuseFlow ring_flow(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                   const FusedBytes& bytes, const RingLaunch& launch);

/// Cycles in which nothing of a row can be computed: its values meet.
double ring_meeting_cycles(const FuseHardware& hw, const ProgramWork& work, const RingLaunch& launch);
/// Cycles that a CTA computes for a row beside that: walks over its part, chunk after chunk.
double ring_walks_cycles(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                         const RingLaunch& launch);

}  // namespace rooftile
