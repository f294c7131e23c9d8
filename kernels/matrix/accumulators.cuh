// A thread's accumulators of a tile, and how stores take them.
#pragma once

#include "kernels/matrix/matrix_config.hpp"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// A thread's fp32 sums of its warpgroup's part of a tile, one 64-row wgmma after the other.
template <MatrixConfig C>
using Accumulators = float[C.wgmma_rows()][C.row_accumulators()];

/// What a CTA stores of a tile, share_n columns of the sums: pairs() gives a thread's values of the i-th wgmma in
/// C's type, two columns a register, from accumulator j of the share on; with a `stride` of 2 every other two,
/// which are those of every other row of 8x8 matrices.
template <MatrixConfig C>
struct OwnSums {
    const Accumulators<C>& sums;
    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e)
            to[e] = ptx::pack2<C.c_type>(sums[i][j + 2 * stride * e], sums[i][j + 2 * stride * e + 1]);
    }
    /// The same in fp32.
    template <int stride = 1, int count>
    __device__ void take(float (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e) to[e] = sums[i][j + 2 * stride * (e / 2) + e % 2];
    }
};

/// The same of a tile that is finished and not yet stored.
template <MatrixConfig C>
struct KeptSums {
    unsigned kept[C.wgmma_rows()][C.row_accumulators() / 2];
    __device__ void keep(const Accumulators<C>& sums) {
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i) OwnSums<C>{sums}.pairs(kept[i], i, 0);
    }
    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
#pragma unroll
        for (int e = 0; e < count; ++e) to[e] = kept[i][j / 2 + stride * e];
    }
};

}  // namespace rooftile
