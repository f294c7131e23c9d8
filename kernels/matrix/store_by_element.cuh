// C straight from registers by predicated stores, where no tensor map can describe it.
#pragma once

#include "kernels/matrix/layout.cuh"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

template <int bytes>
struct StoredElementOf {
    using type = unsigned short;
};
template <>
struct StoredElementOf<1> {
    using type = unsigned char;
};
template <>
struct StoredElementOf<4> {
    using type = float;
};

/// An element of C as it is stored.
template <MatrixConfig C>
using StoredElement = typename StoredElementOf<C.result_bytes()>::type;

/// Two neighbours of a part's sums as they are stored.
template <MatrixConfig C, class Sums>
__device__ void finished_pair(StoredElement<C> (&to)[2], const Sums& sums, int i, int j) {
    if constexpr (C.c_type == Type::fp32) {
        sums.take(to, i, j);
    } else {
        unsigned pair[1];
        sums.pairs(pair, i, j);
        to[0] = static_cast<StoredElement<C>>(pair[0]), to[1] = static_cast<StoredElement<C>>(pair[0] >> 8 * C.result_bytes());
    }
}

/// Where a result begins, of the product at hand, and its elements from row to row.
template <MatrixConfig C, int result>
__device__ StoredElement<C>* result_at(const MatrixArguments& args, int product, long long& pitch) {
    if constexpr (result == 0) {
        pitch = args.ldc;
        auto* c = static_cast<StoredElement<C>*>(args.c);
        if constexpr (C.batched && !C.grouped()) c += product * args.c_stride;
        return c;
    } else {
        pitch = C.result_columns(args.n);
        return static_cast<StoredElement<C>*>(args.more_results[result - 1]) + product * (args.m * pitch);
    }
}

/// C straight from registers, for an ldc that no tensor map can describe: an element at a time.
template <MatrixConfig C, int result, class Sums>
__device__ void store_by_element(const Sums& sums, const MatrixArguments& args, const TileOrigin& at) {
    const int thread = threadIdx.x % C.warpgroup_threads;
    long long pitch;
    auto* c = result_at<C, result>(args, at.batch, pitch);
    // Unsigned: a tile beyond the last one may begin past 2^31, and still lies outside C.
    const unsigned row = at.m + thread / 32 * 16 + thread % 32 / 4;
    const unsigned column = at.n + thread % 4 * 2;
    const unsigned rows = C.grouped() ? at.end : args.m, columns = C.result_columns(args.n);
    [[maybe_unused]] unsigned folded = 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned r = row + 64 * i + 8 * half;
            if (r >= rows) continue;
            StoredElement<C>* line = c + r * pitch;
#pragma unroll
            for (int j = 0; j < C.stored_n() / 8; ++j) {
                StoredElement<C> pair[2];
                finished_pair<C>(pair, sums, i, 4 * j + 2 * half);
                const unsigned x = column + 8 * j;
                if constexpr (C.ablated == Ablation::store) {
                    folded ^= static_cast<unsigned>(pair[0]) ^ static_cast<unsigned>(pair[1]) << 16;
                    continue;
                }
                if (x < columns) line[x] = pair[0];
                if (x + 1 < columns) line[x + 1] = pair[1];
            }
        }
    }
    // Of sums that nobody reads ptxas leaves out the products too. No K is negative.
    if (C.ablated == Ablation::store && args.k < 0) ptx::store_matrix_x2(16 * thread, folded, folded);
}

/// The same with swap_ab: what lies side by side in a thread lies one above the other in C.
template <MatrixConfig C, int result, class Sums>
__device__ void store_transposed_by_element(const Sums& sums, const MatrixArguments& args, const TileOrigin& at) {
    const int thread = threadIdx.x % C.warpgroup_threads;
    long long pitch;
    auto* c = result_at<C, result>(args, at.batch, pitch);
    const unsigned row = at.m + thread % 4 * 2;
    const unsigned column = at.n + thread / 32 * 16 + thread % 32 / 4;
    const unsigned rows = C.grouped() ? at.end : args.m, columns = args.n;
    [[maybe_unused]] unsigned folded = 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned x = column + 64 * i + 8 * half;
            if (x >= columns) continue;
            StoredElement<C>* line = c + row * pitch + x;
#pragma unroll
            for (int j = 0; j < C.share_n() / 8; ++j) {
                StoredElement<C> pair[2];
                finished_pair<C>(pair, sums, i, 4 * j + 2 * half);
                const unsigned r = row + 8 * j;
                if constexpr (C.ablated == Ablation::store) {
                    folded ^= static_cast<unsigned>(pair[0]) ^ static_cast<unsigned>(pair[1]) << 16;
                    continue;
                }
                if (r < rows) line[0] = pair[0];
                if (r + 1 < rows) line[pitch] = pair[1];
                line += 8 * pitch;
            }
        }
    }
    if (C.ablated == Ablation::store && args.k < 0) ptx::store_matrix_x2(16 * thread, folded, folded);
}

}  // namespace rooftile
