// The roofs of copying and of reading, as the bulk engine reaches them: one thread a CTA keeps a ring of pieces in
// shared memory on their way. sm_90 and later.
#pragma once

#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

inline constexpr int stream_stages_max = 16;

/// Pieces of `piece` bytes, the last one what is left, go around the CTAs of the grid; each CTA has `stages` of them
/// in dynamic shared memory. `stored`: each also goes out again, to `to`. `last`: as of copy_pieces.
template <bool stored, bool last>
__device__ inline void stream_ring(char* to, const char* from, long long bytes, int piece, int stages) {
    extern __shared__ __align__(128) char memory[];
    __shared__ unsigned long long full[stream_stages_max];
    if (threadIdx.x != 0) return;
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(memory));
    const Ring<stream_stages_max> ring{static_cast<unsigned>(__cvta_generic_to_shared(full))};
    ring.init_full(1, stages);
    ptx::fence_mbarrier_init();

    const long long pieces = (bytes + piece - 1) / piece;
    const auto offset_of = [&](long long turn) { return (blockIdx.x + turn * gridDim.x) * piece; };
    const auto size_of = [&](long long turn) {
        const long long left = bytes - offset_of(turn);
        return static_cast<unsigned>(left < piece ? left : piece);
    };
    const long long turns = blockIdx.x < pieces ? (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    RingPosition<stream_stages_max> filled, arrived;
    const auto load = [&](long long turn) {
        if (turn >= turns) return;
        ring.expect(filled.stage, size_of(turn));
        ptx::bulk_load<last ? CachePolicy::evict_last : CachePolicy::normal>(
            shared + filled.stage * piece, from + offset_of(turn), size_of(turn), ring.full(filled.stage));
        filled.advance(stages);
    };
    for (int s = 0; s < stages; ++s) load(s);
    for (long long turn = 0; turn < turns; ++turn, arrived.advance(stages)) {
        ring.wait(arrived);
        if constexpr (!stored) {
            load(turn + stages);
        } else {
            ptx::bulk_store(to + offset_of(turn), shared + arrived.stage * piece, size_of(turn));
            ptx::tma_store_commit();
            // The store before this one has left shared memory: its stage is free. Its own may be on its way.
            ptx::tma_store_wait_read<1>();
            if (turn > 0) load(turn - 1 + stages);
        }
    }
    // Shared memory must outlive the stores that read it.
    if constexpr (stored) ptx::tma_store_wait_read<0>();
}

/// Every byte of `from`, a multiple of 16 of them, once to `to`.
template <bool last>
__global__ void __launch_bounds__(32)
    copy_bulk(char* to, const char* from, long long bytes, int piece, int stages) {
    stream_ring<true, last>(to, from, bytes, piece, stages);
}

/// Every byte of `from` once, to shared memory.
__global__ void __launch_bounds__(32) read_bulk(const char* from, long long bytes, int piece, int stages) {
    stream_ring<false, false>(nullptr, from, bytes, piece, stages);
}

}  // namespace rooftile
