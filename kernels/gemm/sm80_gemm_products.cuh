// The products of sm80_gemm: fragments from a stage to registers, and mma.sync on them.
#pragma once

#include "kernels/gemm/sm80_gemm_layout.cuh"
#include "kernels/ptx/mma.cuh"

namespace rooftile {

/// A warp's sums: [warp_m / 16][warp_n / 8] of m16n8.
template <Sm80GemmConfig C>
using Sm80Sums = float[C.warp_m() / C.mma_m][C.warp_n() / C.mma_n][4];

/// One operand of one k-step: [warp_m or warp_n / 16] of 16 x 16 elements.
template <Sm80GemmConfig C, bool is_a>
using Sm80Fragments = unsigned[Sm80Operand<C, is_a>::warp_extent / 16][4];

/// Where a lane finds its rows of the 8x8 matrices that its warp loads. mma wants A's in the order of rows, then
/// k, and B's of k, then columns; an operand that is contiguous along M or N is transposed on the way.
template <Sm80GemmConfig C, bool is_a>
struct Sm80Reader {
    using Tile = Sm80Operand<C, is_a>;
    static constexpr bool transposed = Tile::major == Major::mn;
    static constexpr int fragments = Tile::warp_extent / 16;
    /// Places are xored along a row, so each 16 elements further along it have one; down a column they only move.
    static constexpr int places = transposed ? fragments : C.k_steps();
    unsigned at[places];  // from the tile's beginning

    __device__ explicit Sm80Reader(int warp) {
        const int lane = threadIdx.x % 32;
        constexpr bool rows_first = is_a != transposed;
        const int row = rows_first ? lane % 16 : lane / 16 * 8 + lane % 8;
        const int chunk = rows_first ? lane / 16 : lane / 8 % 2;
        const int first = warp * Tile::warp_extent;  // of M or N
#pragma unroll
        for (int i = 0; i < places; ++i)
            at[i] = Tile::place(row + (transposed ? 0 : first),
                                chunk + 2 * i + (transposed ? first / C.chunk_elements : 0));
    }
    __device__ void load(Sm80Fragments<C, is_a>& to, unsigned tile, int k_step) const {
#pragma unroll
        for (int i = 0; i < fragments; ++i) {
            if constexpr (transposed)
                ptx::load_matrix_x4_transposed(to[i], tile + at[i] + 16 * k_step * Tile::row_bytes);
            else ptx::load_matrix_x4(to[i], tile + at[k_step] + 16 * i * Tile::row_bytes);
        }
    }
};

/// One k-step of a warp: [warp_m x 16] * [16 x warp_n].
template <Sm80GemmConfig C>
__device__ void multiply(Sm80Sums<C>& sums, const Sm80Fragments<C, true>& a,
                         const Sm80Fragments<C, false>& b) {
#pragma unroll
    for (int i = 0; i < C.warp_m() / C.mma_m; ++i)
#pragma unroll
        for (int j = 0; j < C.warp_n() / C.mma_n; ++j)
            ptx::mma<C.type>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
}

}  // namespace rooftile
