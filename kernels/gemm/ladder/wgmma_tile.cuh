// What rungs 4-6 share: 64 rows of a CTA's tile through wgmma, and into an epilogue tile that TMA stores.
#pragma once

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace rooftile::ladder {

/// Sums of 64 x n elements, a warpgroup's: thread t holds rows 16 (t / 32) + t % 32 / 4 (+ 8), columns
/// 2 (t % 4) + 8 j and the next.
template <int n>
using Sums = float[64 * n / 128];

/// Keeps the compiler from touching sums that a wgmma may still write.
template <int count>
__device__ inline void pin(float (&sums)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) ptx::wgmma_pin(sums[i]);
}

/// Starts sums += A[64 x 64] * B[n x 64]^T from shared memory, rows of 128 B in TMA's 128-byte swizzle;
/// `fresh`: sums begin at zero. Wait with ptx::wgmma_wait, then pin.
template <Type type, int n>
__device__ inline void multiply_async(Sums<n>& sums, unsigned a, unsigned b, bool fresh) {
    constexpr int eight_rows = 8 * LadderConfig::swizzle_bytes;  // what the swizzle repeats in
    constexpr int k_steps = LadderConfig::swizzle_bytes / 32;    // a wgmma takes 32 B of K
    const auto rows = ptx::matrix_descriptor(a, 16, eight_rows);
    const auto columns = ptx::matrix_descriptor(b, 16, eight_rows);
    pin(sums);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < k_steps; ++step)  // descriptors count in 16 B
        ptx::wgmma<n, type, type, Major::k, Major::k>(sums, rows + 2 * step, columns + 2 * step,
                                                step > 0 || !fresh);
    ptx::wgmma_commit();
    pin(sums);
}

/// Columns [column, column + 64) of the sums to an epilogue tile [64][64] of 16-bit elements, swizzled for TMA.
template <Type type, int count>
__device__ inline void write_epilogue_tile(const float (&sums)[count], int column, unsigned epilogue_tile) {
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < LadderConfig::epilogue_columns; j += 16) {
        const float* d = &sums[(column + j) / 2];
        const int chunk = j / 8 + lane / 16;  // of 16 B, stored at chunk xor row % 8
        ptx::store_matrix_x4(epilogue_tile + row * LadderConfig::swizzle_bytes + (chunk ^ row % 8) * 16,
                             ptx::pack2<type>(d[0], d[1]), ptx::pack2<type>(d[2], d[3]),
                             ptx::pack2<type>(d[4], d[5]), ptx::pack2<type>(d[6], d[7]));
    }
}

}  // namespace rooftile::ladder
