// How a tile of C leaves: by epilogue tiles through TMA, upright or transposed, or by predicated stores.
#pragma once

#include "kernels/matrix/accumulators.cuh"
#include "kernels/matrix/store_by_element.cuh"
#include "kernels/matrix/store_rows.cuh"
#include "kernels/matrix/store_transposed.cuh"
#include "kernels/matrix/store_upright.cuh"

namespace rooftile {

/// Epilogue tile `s` of a tile: registers -> shared memory -> TMA.
template <MatrixConfig C, int result = 0, class Sums>
__device__ void store_epilogue_tile(const Sums& sums, StoreTarget<C>& target, int s) {
    if constexpr (C.swap_ab) store_transposed_tile<C, result>(sums, target, s);
    else store_upright_tile<C, result>(sums, target, s);
}

template <MatrixConfig C, int result = 0, class Sums>
__device__ void store_by_tma(const Sums& sums, StoreTarget<C>& target) {
#pragma unroll
    for (int s = 0; s < C.epilogue_tiles(); ++s) store_epilogue_tile<C, result>(sums, target, s);
}

template <MatrixConfig C, int result, class Sums>
__device__ void store_by_rows(const Sums& sums, const StoreTarget<C>& target, const MatrixArguments& args, const TileOrigin& at) {
    long long pitch;
    unsigned short* c = result_at<C, result>(args, at.batch, pitch);
    const unsigned staged = target.shared.epilogue_tile(target.warpgroup, 0) + threadIdx.x % C.warpgroup_threads / 32 * C.staged_bytes();
    // Unsigned: a tile beyond the last one may begin past 2^31, and still is outside C.
    store_rows<C>(sums, c, pitch, at.m, C.grouped() ? at.end : args.m, at.n, C.result_columns(args.n), staged);
}

template <MatrixConfig C, int result = 0, class Sums>
__device__ void store(const Sums& sums, StoreTarget<C>& target, const MatrixArguments& args, const TileOrigin& at) {
    target.at = at;
    if constexpr (C.tma_store) store_by_tma<C, result>(sums, target);
    else if constexpr (C.swap_ab) store_transposed_by_element<C, result>(sums, args, at);
    else if constexpr (C.result_bytes() == 2 && C.ablated != Ablation::store) store_by_rows<C, result>(sums, target, args, at);
    else store_by_element<C, result>(sums, args, at);
}

}  // namespace rooftile
