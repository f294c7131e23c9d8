// What fits the model of memory-bound kernels to runs of them: the machine's calibration, keys `stream.*`.
#pragma once

#include <limits>
#include <span>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Each number as it is where no calibration says it: then physics alone is left. Cycles and instructions that nobody
/// counted are none, and what goes on side by side overlaps wholly.
struct FuseFit {
    static constexpr double whole_overlap = std::numeric_limits<double>::infinity();

    double overlap_exponent = whole_overlap;  ///< of rows: DRAM's time beside what an SM's CTAs do one after the other
    double thread_instructions = 0;           ///< of a thread of rows beside its elements
    double reduction = 0;                     ///< cycles of a joint one of threads: shuffles, barrier, who comes late
    double grid_reduction = 2;                ///< L2 latencies: one CTA tells, another one looks
    double ring_chunk = 0;                    ///< cycles: waiting for a slot, and giving it back
};

/// A number of FuseFit and the machine's key for it.
struct FuseFitKey {
    const char* key;
    double FuseFit::*number;
};
std::span<const FuseFitKey> fuse_fit_keys();

FuseFit fuse_fit(const Machine& machine);

}  // namespace rooftile
