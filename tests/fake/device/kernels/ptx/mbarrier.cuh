// Stands in for kernels/ptx/mbarrier.cuh where kernels/pipeline/ring.cuh runs on the CPU: barriers that count
// arrivals and phases; bytes are taken to have come when they are announced. A wait that would block is counted.
#pragma once

#include <map>

#define __device__

inline struct { unsigned x = 0; } threadIdx;

namespace rooftile::ptx {

struct FakeBarrier {
    unsigned arrivals = 0, pending = 0, phase = 0;  ///< phase: number of the one that is not over
};
inline std::map<unsigned, FakeBarrier> fake_barriers;  ///< by address
inline int fake_blocked = 0;                           ///< waits that would not have returned

inline void mbarrier_init(unsigned barrier, unsigned arrivals) {
    fake_barriers[barrier] = {arrivals, arrivals, 0};
}
inline void mbarrier_arrive(unsigned barrier) {
    FakeBarrier& b = fake_barriers.at(barrier);
    if (--b.pending > 0) return;
    b.pending = b.arrivals;
    ++b.phase;
}
inline void mbarrier_arrive_expect(unsigned barrier, unsigned) { mbarrier_arrive(barrier); }
inline void mbarrier_arrive_remote(unsigned barrier, unsigned) { mbarrier_arrive(barrier); }
inline void mbarrier_arrive_remote_release(unsigned barrier, unsigned) { mbarrier_arrive(barrier); }
/// PTX ISA, "mbarrier.try_wait": true once the phase of this parity, the last one or the one before, is over.
inline void mbarrier_wait(unsigned barrier, unsigned parity) {
    fake_blocked += fake_barriers.at(barrier).phase % 2 == parity;
}
inline void mbarrier_wait_cluster(unsigned barrier, unsigned parity) { mbarrier_wait(barrier, parity); }

}  // namespace rooftile::ptx
