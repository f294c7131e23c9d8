// The roofs of copying and of reading, as the bulk engine reaches them: one thread a CTA keeps a ring of pieces in
// shared memory on their way. sm_90 and later.
#pragma once

#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

inline constexpr int stream_stages_max = 16;

/// Pieces of `piece` bytes, the last one what is left, go around the CTAs of the grid; each CTA has `stages` of them
/// in dynamic shared memory. `stored`: each also goes out again, to `to`. `last`: as of copy_pieces.
template <bool stored, bool last>
__device__ inline void stream_ring(char* to, const char* from, long long bytes, int piece, int stages) {
    extern __shared__ __align__(128) char ring[];
    __shared__ unsigned long long full[stream_stages_max];
    if (threadIdx.x != 0) return;
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(ring));
    const auto barriers = static_cast<unsigned>(__cvta_generic_to_shared(full));
    for (int s = 0; s < stages; ++s) ptx::mbarrier_init(barriers + 8 * s, 1);
    ptx::fence_mbarrier_init();

    const long long pieces = (bytes + piece - 1) / piece;
    const auto offset_of = [&](long long turn) { return (blockIdx.x + turn * gridDim.x) * piece; };
    const auto size_of = [&](long long turn) {
        const long long left = bytes - offset_of(turn);
        return static_cast<unsigned>(left < piece ? left : piece);
    };
    const long long turns = blockIdx.x < pieces ? (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    const auto load = [&](long long turn) {
        if (turn >= turns) return;
        const int stage = static_cast<int>(turn % stages);
        ptx::mbarrier_arrive_expect(barriers + 8 * stage, size_of(turn));
        ptx::bulk_load<last ? CachePolicy::evict_last : CachePolicy::normal>(
            shared + stage * piece, from + offset_of(turn), size_of(turn), barriers + 8 * stage);
    };
    for (int s = 0; s < stages; ++s) load(s);
    for (long long turn = 0; turn < turns; ++turn) {
        const int stage = static_cast<int>(turn % stages);
        ptx::mbarrier_wait(barriers + 8 * stage, static_cast<unsigned>(turn / stages) & 1);
        if constexpr (!stored) {
            load(turn + stages);
        } else {
            ptx::bulk_store(to + offset_of(turn), shared + stage * piece, size_of(turn));
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
