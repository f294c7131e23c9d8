// Registers of a fused kernel's thread, and how many of its CTAs an SM holds: estimates before compiling.
#pragma once

#include "rooftile/fuse/hardware.hpp"
#include "rooftile/fuse/launch_model.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// 32-bit registers that one vector of each of a program's loads of elements takes.
struct LoadWords {
    double full = 0, shared = 0;  ///< read at the loop's own place; what rows or columns share
    double only = 0;              ///< of the latter, what all rows share

    /// Of what is shared, for all vectors of a thread: stacked ones have once what all rows share.
    double shared_of(int vectors_per_thread, bool stacked) const {
        return vectors_per_thread * shared - (stacked ? (vectors_per_thread - 1) * only : 0);
    }
};
LoadWords load_words(const Program& program, int vector_width);
/// Dropouts whose mask a thread makes of each vector; those of one value a row have theirs once a row.
int masks_of_vectors(const Program& program);

/// What the compiler is likely to take of the `bound` that it may: a multiple of 8.
double registers_likely(const Program& program, const ProgramWork& work,
                        const FuseConfig& config, double bound);
/// Threads of an SM if all its partitions had as many warps as the fullest one of `threads`: the registers of a warp
/// lie in one partition, so these count.
double even_threads(const FuseHardware& hw, double threads);

/// CTAs that an SM holds of a kernel with those registers a thread and that shared memory a CTA; NaN where
/// no limit is known.
double resident_ctas(const FuseHardware& hw, const FuseConfig& config, double registers, double shared_bytes);

}  // namespace rooftile
