// Rows that go through a ring of chunks in shared memory, while CTAs stay [M20-M22]: pure functions. NaN
// stands for an unknown number.
#pragma once

#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {

/// A launch, as far as time depends on it.
struct RingLaunch {
    double threads_per_row = 0;     ///< threads of a CTA that compute
    double vectors_per_thread = 1;  ///< vectors of a chunk that each has
    double cluster = 1;      ///< CTAs that share a row
    double slots = 1;        ///< chunks in a CTA's shared memory
    double chunks = 1;       ///< of a CTA's part of a row
    double chunk_bytes = 0;  ///< of the tensors in the slots
    double epilogue_bytes =
        0;                  ///< of a chunk of those that only the last pass reads: threads load it, one ahead
    bool kept = false;      ///< what all rows share lies in shared memory
    bool far = false;       ///< the CTAs are no cluster: they reduce through device memory
    double clusters = 1;    ///< of the grid; all work at once
    double reduction_threads =
        0;  ///< further threads, which reduce while the others store the row before; 0: all do both
    bool dynamic = false;  ///< clusters take rows as they come for them, so that all end nearly together
};

/// DRAM's time at the copy's rate, less what persistent CTAs lose; times the rows of the busiest cluster over
/// the average, where rows are not scheduled dynamically or too few to even out; longer as what a CTA does for a row, one thing
/// after the other, comes near the row's DRAM time, with the wait for a chunk where slots are returned too late
/// for it. Around it the first chunk's way in, and the last row's reduction and result.
FuseFlow ring_flow(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                   const FusedBytes& bytes, const RingLaunch& launch);

/// Cycles in which nothing of a row can be computed: its values are reduced.
double ring_reduction_cycles(const FuseHardware& hw, const ProgramWork& work, const RingLaunch& launch);
/// Cycles that the last pass over a row takes longer where its threads load what they need: in which stores
/// leave the SM, which its CTAs share, and in which each CTA waits for L2.
struct RingEpilogue {
    double draining = 0, waiting = 0;
};
/// `row_dram`: cycles of DRAM for the rows of all CTAs of an SM. A thread asks a chunk ahead, for each vector when the
/// one before it in the same registers is used up: behind one store. So a chunk of the last pass lasts until the stores
/// of a vector have left at the SM's share of DRAM's rate, beside what comes in meanwhile, and one L2 latency.
RingEpilogue ring_epilogue(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                           const RingLaunch& launch, double row_dram);
/// Cycles from row to row that a CTA's reducing threads take for its chunks and its reduction, or, where the
/// ring has not two rows of slots, that pass around the way from a slot's return to the next row's first result;
/// `storing`: cycles of a row for those that store, `loaded`: of a chunk's way in.
double specialised_reduction_cycles(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                                    const RingLaunch& launch, double storing, double loaded);
/// Cycles that a CTA computes for a row beside that: passes over its part, chunk after chunk, at the SM's issue rate or that of the
/// CTAs' warps, of which each waits for its last result.
double ring_passes_cycles(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                          const RingLaunch& launch);

}  // namespace rooftile
