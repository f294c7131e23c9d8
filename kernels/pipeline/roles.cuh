// Warpgroups with roles: the first one brings operands, the others compute.
//
// Registers move by setmaxnreg before a role begins, as all threads of a warpgroup must ask together: so a
// kernel branches on warpgroup() first and then calls one of begin_producer() and begin_consumer(). Of the
// producer warpgroup one thread of the first warp produces; the other 127 have given their registers away and
// are done.
#pragma once

#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// This thread's warpgroup of the CTA, 4 warps each.
__device__ inline int warpgroup() { return ptx::warp_uniform(threadIdx.x / 128); }

/// Of all threads of warpgroup 0: true in the one that produces. Both: `registers` a thread; 0 leaves what the
/// launch gave.
template <int registers>
__device__ inline bool begin_producer() {
    if constexpr (registers > 0) ptx::release_registers<registers>();
    return ptx::warp_uniform(threadIdx.x / 32) == 0 && ptx::elect_one();
}
/// Of all threads of a warpgroup that computes.
template <int registers>
__device__ inline void begin_consumer() {
    if constexpr (registers > 0) ptx::take_registers<registers>();
}

}  // namespace rooftile
