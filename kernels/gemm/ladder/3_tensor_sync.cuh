// Rung 3, tensor_sync: the tensor cores of Ampere, by mma.sync, ldmatrix and cp.async; sm_80 and later.
//
// Adds      a warp multiplies 16 x 8 x 16 at once. Tiles come by cp.async, 16 bits an element and past the
//           registers: while one buffer is multiplied, the other fills.
// Limit     shared memory: ldmatrix carries each operand to registers once for every warp that needs it, 96
//           KiB for 32 KiB written: 1024 cycles a step of 64 in K, where mma.sync needs 814 of a Hopper SM.
// Predicted 2 * 128 * 128 * 64 / 1024 = 2048 FLOP a cycle: 9.5 times rung 2.
// Rules     K a multiple of 8: rows of A and B are copied in 16-byte pieces.
#pragma once

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile::ladder {

struct TensorSync {
    static constexpr LadderConfig C = ladder_config(Rung::tensor_sync);
    static constexpr int mma_m = 16, mma_n = 8, mma_k = 16;
    static constexpr int chunks = C.tile_k / C.chunk_elements;  // of 16 B in a row of a tile
    static constexpr int warps_n = C.tile_n / C.block_n;
    static_assert(C.tile_k * C.staged_bytes == C.swizzle_bytes, "a row of a tile is 8 chunks");
    static_assert(C.tile_m / C.block_m * warps_n * 32 == C.threads(), "every block of C has its warp");
    static_assert(C.stages == 2, "one buffer is multiplied, the other fills");

    /// Chunks of row r are stored at position chunk xor r % 8: eight rows of one chunk, which is what
    /// ldmatrix reads at a time, then lie in eight different groups of banks.
    static __device__ unsigned place(unsigned tile, int row, int chunk) {
        return tile + row * C.swizzle_bytes + (chunk ^ row % 8) * 16;
    }

    /// Starts copying rows [first, first + rows) of A or B from column k0 on; zeros outside.
    static __device__ void copy(unsigned tile, int rows, const unsigned short* from, unsigned first,
                                int extent, int k0, int k) {
        for (int i = threadIdx.x; i < rows * chunks; i += C.threads()) {
            const int row = i / chunks, chunk = i % chunks, column = k0 + chunk * C.chunk_elements;
            const bool inside = first + row < unsigned(extent) && column < k;
            const long long at = inside ? static_cast<long long>(first + row) * k + column : 0;
            ptx::copy_async_16(place(tile, row, chunk), from + at, inside);
        }
    }

    using Sums = float[C.block_m / mma_m][C.block_n / mma_n][4];

    /// One step of a warp: [64 x 64] of A and [32 x 64] of B, whose first rows are m and n of the staged
    /// tiles.
    template <Type type>
    static __device__ void multiply(Sums& sums, unsigned a, unsigned b, int m, int n) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < chunks; k += mma_k / C.chunk_elements) {
            unsigned x[C.block_m / mma_m][4];      // [16 x 16] each
            unsigned y[C.block_n / mma_n / 2][4];  // [16 rows of B x 16]: two operands of mma
#pragma unroll
            for (int i = 0; i < C.block_m / mma_m; ++i)
                ptx::load_matrix_x4(x[i], place(a, m + mma_m * i + lane % 16, k + lane / 16));
#pragma unroll
            for (int j = 0; j < C.block_n / mma_n / 2; ++j)
                ptx::load_matrix_x4(
                    y[j], place(b, n + 2 * mma_n * j + lane / 16 * mma_n + lane % 8, k + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < C.block_m / mma_m; ++i)
#pragma unroll
                for (int j = 0; j < C.block_n / mma_n; ++j)
                    ptx::mma<type>(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
};

template <Type type>
__global__ void __launch_bounds__(TensorSync::C.threads(), TensorSync::C.ctas_per_sm)
    tensor_sync(const LadderArguments args) {
    using T = TensorSync;
    constexpr LadderConfig C = T::C;
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned base = ptx::shared_address(memory);  // stages of A then B
    const unsigned columns = (args.n - 1) / C.tile_n + 1;
    const unsigned m0 = blockIdx.x / columns * C.tile_m, n0 = blockIdx.x % columns * C.tile_n;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int m = warp / T::warps_n * C.block_m, n = warp % T::warps_n * C.block_n;  // of this warp's block

    const int k_blocks = (args.k - 1) / C.tile_k + 1;
    const auto fill = [&](int block) {
        const unsigned stage = base + block % C.stages * C.stage_bytes();
        T::copy(stage, C.tile_m, args.a, m0, args.m, block * C.tile_k, args.k);
        T::copy(stage + C.a_bytes(), C.tile_n, args.b, n0, args.n, block * C.tile_k, args.k);
    };
    typename T::Sums sums = {};
    fill(0);
    ptx::copy_async_commit();
    for (int block = 0; block < k_blocks; ++block) {
        if (block + 1 < k_blocks) fill(block + 1);
        ptx::copy_async_commit();   // an empty group at the end, so that the count below holds
        ptx::copy_async_wait<1>();  // this block is here; the next may still be on its way
        __syncthreads();
        const unsigned stage = base + block % C.stages * C.stage_bytes();
        T::multiply<type>(sums, stage, stage + C.a_bytes(), m, n);
        __syncthreads();  // everybody is done with the buffer that is filled next
    }

#pragma unroll
    for (int i = 0; i < C.block_m / T::mma_m; ++i)
#pragma unroll
        for (int j = 0; j < C.block_n / T::mma_n; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const unsigned row = m0 + m + T::mma_m * i + lane / 4 + e / 2 * 8;
                const unsigned column = n0 + n + T::mma_n * j + lane % 4 * 2 + e % 2;
                if (row < unsigned(args.m) && column < unsigned(args.n))
                    args.c[static_cast<long long>(row) * args.n + column] = ptx::narrow<type>(sums[i][j][e]);
            }
}

}  // namespace rooftile::ladder
