// Reductions of everything: every CTA leaves its part in the workspace, and the last one to come merges them.
// No second launch, no atomic sum: equal grids give equal results.
#pragma once

#include "kernels/fuse/team.cuh"

namespace rooftile::fuse {

/// The workspace: a counter, 16 bytes apart from it the parts, `Team::words` words each, `slot` after `slot`.
constexpr int workspace_header = 16;

template <class Accumulator>
__device__ inline Accumulator* parts_of(void* workspace, int slot) {
    constexpr int max_bytes = 16;
    static_assert(sizeof(Accumulator) <= max_bytes);
    char* first = static_cast<char*>(workspace) + workspace_header;
    return reinterpret_cast<Accumulator*>(first + static_cast<long long>(slot) * gridDim.x * max_bytes);
}

/// Of thread 0 of a CTA whose team has reduced `mine`.
template <class Accumulator>
__device__ inline void leave(void* workspace, int slot, const Accumulator& mine) {
    if (threadIdx.x == 0) parts_of<Accumulator>(workspace, slot)[blockIdx.x] = mine;
}

/// True in all threads of the CTA that came last; the counter is 0 again then.
__device__ inline bool came_last(void* workspace) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();  // the parts before the count
        last = atomicInc(static_cast<unsigned*>(workspace), gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/// Everything together, in every thread.
template <class Accumulator, class RowTeam>
__device__ inline Accumulator gathered(RowTeam& team, void* workspace, int slot) {
    const volatile unsigned* raw;
    Accumulator all;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        raw = reinterpret_cast<const volatile unsigned*>(parts_of<Accumulator>(workspace, slot) + i);
        struct {
            unsigned word[sizeof(Accumulator) / sizeof(unsigned)];
        } copy;
#pragma unroll
        for (int w = 0; w < int(sizeof(Accumulator) / sizeof(unsigned)); ++w) copy.word[w] = raw[w];
        all.merge(__builtin_bit_cast(Accumulator, copy));
    }
    return team.reduced(all);
}

}  // namespace rooftile::fuse
