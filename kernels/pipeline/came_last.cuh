// CTAs that leave parts of one result in device memory, where whoever comes last adds them up: nobody waits.
#pragma once

#include "kernels/ptx/arrival.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// By `threads` threads, whole warps, that meet at named barrier `barrier`: whether all other `parts` have counted themselves at `counter`, and
/// what they left is seen. The counter is then 0 again.
__device__ inline bool came_last(int barrier, int threads, unsigned* counter, int parts) {
    ptx::named_barrier_sync(barrier, threads);
    bool last = false;
    if (threadIdx.x % threads == 0) last = ptx::count_arrival(counter, parts - 1) + 1 == static_cast<unsigned>(parts);
    return ptx::named_barrier_any(barrier, threads, last);
}

}  // namespace rooftile
