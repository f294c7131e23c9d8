// Rung 1, naive: one thread computes one element of C and takes its operands straight from global memory.
//
// Adds      the product as it is defined, and 65536 threads at once to do it.
// Limit     loads. A warp covers 2 x 16 elements of C: its two loads touch 2 lines of A and 16 of B (rows of
//           B lie K elements apart), and L1 hands out one line a cycle: 18 cycles for 32 multiply-adds.
// Predicted 32 / 18 = 1.8 multiply-adds a cycle of an SM that could do 128: 1/72 of its CUDA cores.
// Rules     any M, N, K >= 1.
#pragma once

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/ptx/convert.cuh"

namespace rooftile::ladder {

template <Type type>
__global__ void __launch_bounds__(ladder_config(Rung::naive).threads()) naive(const LadderArguments args) {
    constexpr LadderConfig C = ladder_config(Rung::naive);
    static_assert(C.tile_m * C.tile_n == C.threads(), "a thread an element");
    static_assert(C.block_m * C.block_n == 32 && C.block_n == C.tile_n, "a warp is whole rows of the tile");

    // Which element is mine. Unsigned: the last tile may reach past 2^31, and still lies outside C.
    const unsigned columns = (args.n - 1) / C.tile_n + 1;  // of tiles
    const unsigned row = blockIdx.x / columns * C.tile_m + threadIdx.x / C.tile_n;
    const unsigned column = blockIdx.x % columns * C.tile_n + threadIdx.x % C.tile_n;
    if (row >= unsigned(args.m) || column >= unsigned(args.n)) return;

    const unsigned short* a = args.a + static_cast<long long>(row) * args.k;     // [K]
    const unsigned short* b = args.b + static_cast<long long>(column) * args.k;  // [K]
    float sum = 0;
    for (int k = 0; k < args.k; ++k) sum += ptx::widen<type>(a[k]) * ptx::widen<type>(b[k]);
    args.c[static_cast<long long>(row) * args.n + column] = ptx::narrow<type>(sum);
}

}  // namespace rooftile::ladder
