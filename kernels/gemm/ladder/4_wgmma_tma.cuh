// Rung 4, wgmma_tma: the tensor cores and the copy engine of Hopper, one step after the other.
//
// Adds      one thread asks TMA for a whole tile and an mbarrier says when its bytes are there; a warpgroup
//           multiplies 64 x 128 x 16 at once, straight from shared memory: busy 640 cycles a step instead of
//           1024, the matrix units 512 instead of 814.
// Limit     one stage: nobody multiplies while a tile is on its way. Three CTAs on an SM fill each other's
//           gaps; then they ask L2 for 32 KiB every 640 cycles, more than it gives at full clock.
// Predicted 883 cycles a step on an H200 at 1.98 GHz: 1.16 times rung 3.
// Rules     K a multiple of 8: TMA wants rows of A and B to begin on 16 bytes.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/gemm/ladder/wgmma_tile.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile::ladder {

struct WgmmaTma {
    static constexpr LadderConfig C = ladder_config(Rung::wgmma_tma);
    static constexpr int wgmmas = C.tile_m / C.block_m;                          // one below the other
    static constexpr int block_bytes = C.block_m * LadderConfig::swizzle_bytes;  // of A for one of them
    static_assert(C.tile_k * C.staged_bytes == C.swizzle_bytes, "a row of a tile is one swizzle span");
    static_assert(C.block_m == 64 && C.block_n == C.tile_n && C.tile_n <= 256, "the shapes of wgmma");
    static_assert(C.threads() == 128 && C.stages == 1, "one warpgroup, one tile at a time");

    /// C from registers, where it lies as wgmma spreads it: two rows and pairs of columns a thread.
    template <Type type>
    static __device__ void store(const Sums<C.tile_n>& sums, const LadderArguments& args, unsigned m0,
                                 unsigned n0) {
        const unsigned row = m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
        const unsigned column = n0 + threadIdx.x % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (row + 8 * half >= unsigned(args.m)) continue;
            unsigned short* line = args.c + static_cast<long long>(row + 8 * half) * args.n;
#pragma unroll
            for (int i = 0; i < C.tile_n / 4; ++i) {
                const unsigned c = column + i / 2 * 8 + i % 2;
                if (c < unsigned(args.n)) line[c] = ptx::narrow<type>(sums[i / 2 * 4 + 2 * half + i % 2]);
            }
        }
    }
};

template <Type type>
__global__ void __launch_bounds__(WgmmaTma::C.threads(), WgmmaTma::C.ctas_per_sm)
    wgmma_tma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ LadderArguments args) {
    using W = WgmmaTma;
    constexpr LadderConfig C = W::C;
    extern __shared__ unsigned char memory[];
    const unsigned a = (ptx::shared_address(memory) + C.tile_alignment - 1) & ~(C.tile_alignment - 1);
    const unsigned b = a + C.a_bytes(), arrived = b + C.b_bytes();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(arrived, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();

    const unsigned columns = (args.n - 1) / C.tile_n + 1;
    const unsigned m0 = blockIdx.x / columns * C.tile_m, n0 = blockIdx.x % columns * C.tile_n;
    const int k_blocks = (args.k - 1) / C.tile_k + 1;
    Sums<C.tile_n> sums[W::wgmmas];
    for (int block = 0; block < k_blocks; ++block) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect(arrived, C.stage_bytes());
            ptx::tma_load_2d(a, map_a, block * C.tile_k, m0, arrived);  // [128][64]
            ptx::tma_load_2d(b, map_b, block * C.tile_k, n0, arrived);  // [128][64]
        }
        ptx::mbarrier_wait(arrived, block % 2);
#pragma unroll
        for (int i = 0; i < W::wgmmas; ++i)
            multiply_async<type, C.tile_n>(sums[i], a + i * W::block_bytes, b, block == 0);
        ptx::wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < W::wgmmas; ++i) pin(sums[i]);
        __syncthreads();  // the tile may be overwritten
    }
#pragma unroll
    for (int i = 0; i < W::wgmmas; ++i) W::store<type>(sums[i], args, m0 + i * C.block_m, n0);
}

}  // namespace rooftile::ladder
