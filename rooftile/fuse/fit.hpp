// What fits the model of memory-bound kernels to runs of them: the machine's calibration, keys `stream.*`.
#pragma once

#include <limits>
#include <span>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Each number as it is where no calibration says it: then physics alone is left. Cycles and instructions that nobody
/// counted are none, shares are all, what goes on side by side overlaps wholly, and arrivals are independent.
struct FuseFit {
    static constexpr double whole_overlap = std::numeric_limits<double>::infinity();
    static constexpr double nobody_knows = std::numeric_limits<double>::quiet_NaN();

    double copy_share = 1;  ///< of the rate of a copy: what kernels reach whose CTAs work on rows, one each
    double loaded_latency = 1;                       ///< of DRAM's latency, where that under load is unknown
    double streams_rows = 64, streams_exponent = 1;  ///< dram.derate.streams is stated for 64 rows
    double cluster_growth = 0;                       ///< of cluster.start, a doubling
    double row_overlap = whole_overlap, pointwise_overlap = whole_overlap, cluster_overlap = whole_overlap;
    double row_variability = 1, pointwise_variability = 1;
    double thread_instructions = 0, row_thread_instructions = 0;
    double row_reduction = 0, row_shuffle = 0;  ///< cycles
    /// Weights that are loaded behind the reduction, L2 latencies: in machine code the load of each vector's stands
    /// behind the store of the vector before; those of several tensors go together. Where registers hold the row each
    /// vector waits for its own. Where shared memory does, with more rows on the way, 8 vectors cost little and 16 a
    /// third of the kernel's time: more than the square, as if the stores of all vectors before were in the queue.
    double weights_registers = 1, weights_shared = 1, weights_exponent = 1;
    double staged_instructions = 0, staged_thread_instructions = 0;
    double staged_wait = 0;                                             ///< cycles
    double ring_shuffles = 0, ring_barrier = 0, ring_chunk = 0;         ///< cycles
    double ring_reduction_instructions = 0, ring_reduction_levels = 0;  ///< more warps reduce longer
    double ring_variability = 1, ring_overlap = whole_overlap;
    double ring_issue_share = 1, ring_mufu_share = 1;
    double specialised_reduction = 0, specialised_element = 0;  ///< cycles
    double specialised_issue_share = 1;
    double grid_reduction = 2;  ///< L2 latencies: one CTA tells, another one looks
    /// Less than in a ring, since between a load and what is done with it nothing else of the row is at hand.
    double grid_issue_share = 1, grid_mufu_share = 1;
    /// Of a point-wise thread; unknown ones leave what the compiler may take.
    double registers_spared = nobody_knows, registers_element = nobody_knows, registers_full = nobody_knows,
           registers_shared = nobody_knows, registers_instruction = nobody_knows,
           registers_instructions_max = nobody_knows;
};

/// A number of FuseFit and the machine's key for it.
struct FuseFitKey {
    const char* key;
    double FuseFit::*number;
};
std::span<const FuseFitKey> fuse_fit_keys();

FuseFit fuse_fit(const Machine& machine);

}  // namespace rooftile
