// How a warp's part of a tile of C leaves: from registers, 16 bytes or one element a store.
#pragma once

#include "kernels/gemm/sm80_gemm_products.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/stream.cuh"

namespace rooftile {

/// Transposes 4 x 4 words among the four lanes of a row: word i of lane j becomes word j of lane i.
__device__ inline void transpose_quad(unsigned (&word)[4]) {
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2) {
        const bool upper = threadIdx.x & distance;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & distance) continue;
            unsigned &low = word[i], &high = word[i + distance];
            const unsigned received = __shfl_xor_sync(0xffffffff, upper ? low : high, distance);
            (upper ? low : high) = received;
        }
    }
}

/// A row of sums, columns 2 (l % 4) and the next of each m16n8 a lane, to `row` of C; `half`: lower 8 of 16 rows.
/// Four m16n8 make four chunks of 16 bytes, one a lane.
template <Sm80GemmConfig C>
__device__ void store_vectors(const Sm80Sums<C>& sums, unsigned short* row, int i, int half, unsigned column,
                              unsigned columns, bool inside) {
    const unsigned chunk = threadIdx.x % 4 * C.chunk_elements;
#pragma unroll
    for (int j = 0; j < C.warp_n() / C.mma_n; j += 4) {
        ptx::Words<16> words;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            words.word[e] = ptx::pack2<C.type>(sums[i][j + e][2 * half], sums[i][j + e][2 * half + 1]);
        transpose_quad(words.word);
        const unsigned x = column + j * C.mma_n + chunk;
        if (inside && x < columns) ptx::store_words(row + x, words);
    }
}

template <Sm80GemmConfig C>
__device__ void store_elements(const Sm80Sums<C>& sums, unsigned short* row, int i, int half, unsigned column,
                               unsigned columns, bool inside) {
    if (!inside) return;
    const unsigned pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < C.warp_n() / C.mma_n; ++j) {
        const unsigned packed = ptx::pack2<C.type>(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
        const unsigned x = column + j * C.mma_n + pair;
        if (x < columns) row[x] = static_cast<unsigned short>(packed);
        if (x + 1 < columns) row[x + 1] = static_cast<unsigned short>(packed >> 16);
    }
}

/// A warp's sums to the matrix `c`, whose first are of row m and column n.
template <Sm80GemmConfig C>
__device__ void store(const Sm80Sums<C>& sums, unsigned short* c, const Sm80GemmArguments& args, unsigned m, unsigned n) {
#pragma unroll
    for (int i = 0; i < C.warp_m() / C.mma_m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            // Unsigned: rows of the last tile may pass 2^31, and still lie outside C.
            const unsigned y = m + C.mma_m * i + 8 * half + threadIdx.x % 32 / 4;
            unsigned short* row = c + y * args.ldc;
            const bool inside = y < unsigned(args.m);
            if constexpr (C.vector_store) store_vectors<C>(sums, row, i, half, n, args.n, inside);
            else store_elements<C>(sums, row, i, half, n, args.n, inside);
        }
}

}  // namespace rooftile
