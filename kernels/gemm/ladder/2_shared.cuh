// Rung 2, shared: a CTA stages tiles of A and B in shared memory, a thread keeps 8 x 8 elements of C.
//
// Adds      reuse. What a CTA loads once serves 128 rows or columns of C; what a thread reads from shared
//           memory serves 8 of its 64 sums. Global memory falls silent, and 64 multiply-adds need 16 reads.
// Limit     the port of shared memory: 2432 cycles a step of 16 in K (2048 of them for the reads), where the
//           CUDA cores need 2048 and their issue slots 2244.
// Predicted 128 * 128 * 16 / 2432 = 108 multiply-adds a cycle of 128: 61 times rung 1.
// Rules     K a multiple of 8: rows of A and B are read in 16-byte pieces.
#pragma once

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/ptx/convert.cuh"

namespace rooftile::ladder {

struct SharedTile {
    static constexpr LadderConfig C = ladder_config(Rung::shared);
    static constexpr int threads_n = C.tile_n / C.block_n;  // 16 threads side by side, 16 below each other
    static constexpr int vector = 4;                        // floats that one thread reads at once, 16 B
    static constexpr int vectors = C.block_m / vector;      // of a thread's rows (and columns)
    static_assert(C.tile_m == C.tile_n && C.block_m == C.block_n, "A and B are staged and read alike");
    static_assert(C.tile_k == 2 * C.chunk_elements && C.threads() == 2 * C.tile_m, "a chunk of A a thread");
    static_assert(C.tile_m / C.block_m * threads_n == C.threads(), "every element has its thread");

    /// Rows 8-15 of a staged tile have their groups of 16 columns swapped, so that the two halves of a warp,
    /// which store to rows 8 apart, meet no bank twice. A multiple of 4 stays one.
    static __device__ int swizzled(int column, int k) { return column ^ k / C.chunk_elements * 16; }

    /// This thread's 8 elements of rows [first, first + 128) of A or B: row-major in global memory, K-major
    /// and widened in shared memory. What lies outside is zero.
    template <Type type>
    static __device__ void load(float (&tile)[C.tile_k][C.tile_m], const unsigned short* from, unsigned first,
                                int extent, int k0, int k) {
        const int row = threadIdx.x / 2, chunk = threadIdx.x % 2 * C.chunk_elements;
        uint4 eight = {0, 0, 0, 0};
        if (first + row < unsigned(extent) && k0 + chunk < k)
            eight =
                *reinterpret_cast<const uint4*>(from + static_cast<long long>(first + row) * k + k0 + chunk);
        const unsigned pairs[] = {eight.x, eight.y, eight.z, eight.w};
        const int column = swizzled(row, chunk);
#pragma unroll
        for (int i = 0; i < C.chunk_elements; ++i)
            tile[chunk + i][column] = ptx::widen<type>(i % 2 ? pairs[i / 2] >> 16 : pairs[i / 2] & 0xffff);
    }

    /// A thread's rows of the tile are `vectors` groups of 4, spread so that a warp reads contiguous floats.
    static __device__ int place(int i, int thread) {
        return i / vector * (C.tile_m / vectors) + thread * vector + i % vector;
    }
    static __device__ void read(float (&values)[C.block_m], const float (&row)[C.tile_m], int thread, int k) {
#pragma unroll
        for (int i = 0; i < C.block_m; i += vector) {
            const float4 four = *reinterpret_cast<const float4*>(&row[swizzled(place(i, thread), k)]);
            values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
        }
    }
};

template <Type type>
__global__ void __launch_bounds__(SharedTile::C.threads(), SharedTile::C.ctas_per_sm)
    shared(const LadderArguments args) {
    using T = SharedTile;
    constexpr LadderConfig C = T::C;
    __shared__ __align__(16) float a[C.tile_k][C.tile_m], b[C.tile_k][C.tile_n];
    const unsigned columns = (args.n - 1) / C.tile_n + 1;
    const unsigned m0 = blockIdx.x / columns * C.tile_m, n0 = blockIdx.x % columns * C.tile_n;
    const int down = threadIdx.x / T::threads_n, across = threadIdx.x % T::threads_n;

    float sums[C.block_m][C.block_n] = {};
    for (int k0 = 0; k0 < args.k; k0 += C.tile_k) {
        T::load<type>(a, args.a, m0, args.m, k0, args.k);
        T::load<type>(b, args.b, n0, args.n, k0, args.k);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < C.tile_k; ++k) {
            float x[C.block_m], y[C.block_n];
            T::read(x, a[k], down, k);
            T::read(y, b[k], across, k);
#pragma unroll
            for (int i = 0; i < C.block_m; ++i)
#pragma unroll
                for (int j = 0; j < C.block_n; ++j) sums[i][j] += x[i] * y[j];
        }
        __syncthreads();  // and free to be overwritten
    }

#pragma unroll
    for (int i = 0; i < C.block_m; ++i) {
        const unsigned row = m0 + T::place(i, down);
        if (row >= unsigned(args.m)) continue;
#pragma unroll
        for (int j = 0; j < C.block_n; ++j) {
            const unsigned column = n0 + T::place(j, across);
            if (column < unsigned(args.n))
                args.c[static_cast<long long>(row) * args.n + column] = ptx::narrow<type>(sums[i][j]);
        }
    }
}

}  // namespace rooftile::ladder
