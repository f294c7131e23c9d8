// How an SM's registers are dealt to the threads of a CTA of one producer and some consumer warpgroups [M13].
#pragma once

#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

/// setmaxnreg of the two roles, 0 where a thread keeps what it has at launch.
struct RegisterSplit {
    int launch = -1;  ///< registers a thread has at launch; -1 unknown
    int producer = 0, consumer = 0;
};
/// The least of a producer that copies by TMA; tests/compile holds it to no spills.
inline constexpr int tight_producer = 24;
/// `ctas` an SM, of which each gives its producer `min_producer` registers a thread at least, and its consumers what that leaves.
RegisterSplit split_registers(double registers_per_sm, double registers_per_thread, int consumers, int ctas, int min_producer);

struct RoleRegisters {
    double producer, consumer;  ///< a thread; NaN: unknown
};
/// Of a CTA that has an SM alone, or `ctas` of them, whose producer has `least_producer` at least. One consumer warpgroup takes as many as a
/// thread can have; where nothing `moves` registers all threads have the same.
RoleRegisters role_registers(const MatrixHardware& hw, int consumers, bool moves = true, int least_producer = tight_producer, int ctas = 1);

}  // namespace rooftile
