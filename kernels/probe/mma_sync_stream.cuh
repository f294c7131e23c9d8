// mma.sync as fast as it goes: m16n8k16 back to back from registers, each into sums of its own.
#pragma once

#include "kernels/probe/record.cuh"
#include "kernels/ptx/mma.cuh"

namespace rooftile {

/// FLOP of one mma.m16n8k16.
constexpr int mma_sync_flops = 2 * 16 * 8 * 16;
/// Words of `fragments` that a thread reads.
constexpr int mma_sync_words(int rows, int columns) { return 4 * rows + 2 * columns; }

/// Each warp multiplies `rows` fragments of A by `columns` of B into rows x columns sums, `loops` times, as a
/// warp of a matrix product multiplies one k-step. A's numbers change their signs from loop to loop: the matrix units' power
/// follows the bits that change, and sums stay as small as they were. `fragments`: random numbers of a 16-bit
/// type, mma_sync_words for each thread of a CTA, the next thread's one word further on.
template <Type type, int warps, int rows, int columns>
__global__ void __launch_bounds__(32 * warps)
    mma_sync_stream(int loops, const unsigned* fragments, ProbeRecord* records) {
    constexpr int threads = 32 * warps;
    constexpr unsigned both_signs = 0x80008000;
    unsigned a[rows][4], b[columns][2];
#pragma unroll
    for (int i = 0; i < 4 * rows; ++i) a[i / 4][i % 4] = fragments[i * threads + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 2 * columns; ++i) b[i / 2][i % 2] = fragments[(4 * rows + i) * threads + threadIdx.x];
    float sums[rows][columns][4] = {};
    __syncthreads();
    const ProbeTime begin = probe_time();
#pragma unroll 1
    for (int loop = 0; loop < loops; ++loop) {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
#pragma unroll
            for (int j = 0; j < columns; ++j) ptx::mma<type>(sums[i][j], a[i], b[j][0], b[j][1]);
#pragma unroll
            for (int e = 0; e < 4; ++e) a[i][e] ^= both_signs;
        }
    }
    float total = 0;
#pragma unroll
    for (int i = 0; i < rows * columns * 4; ++i) total += sums[i / 4 / columns][i / 4 % columns][i % 4];
    unsigned sink = __float_as_uint(total);
    probe_keep(sink);  // the products are done
    __syncthreads();
    const ProbeTime end = probe_time();
    if (threadIdx.x == 0) write_record(records, begin, end, sink);
}

}  // namespace rooftile
