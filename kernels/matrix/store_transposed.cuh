// Epilogue tiles of C where the accumulators are those of its transpose (swap_ab): a warpgroup writes and stores them together.
#pragma once

#include "kernels/matrix/epilogue_tile.cuh"
#include "kernels/matrix/store_ragged.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// The same in fp32: 32 columns of C, and the other 32 behind all rows of these.
template <MatrixConfig C, class Sums>
__device__ void write_transposed_floats(unsigned to, const Sums& sums, int i, int row, int warp) {
    float values[C.turned_rows() / 2];  // a thread has two rows of each eight, in two columns
    sums.take(values, i, row / 2);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < C.turned_rows() / 2; ++e) {
        const int r = e / 4 * 8 + lane % 4 * 2 + e % 2, column = 16 * warp + lane / 4 + e / 2 % 2 * 8;
        const unsigned at = to + column / 32 * C.turned_rows() * C.swizzle_bytes + r * C.swizzle_bytes
                            + column % 32 * 4;
        ptx::store_shared_1(at ^ (r % 8 << 4), values[e]);
    }
}

/// A warp's part of a transposed epilogue tile, [turned_rows][64 columns of C] at `to`: 16 of the columns. `row`: the first, of the
/// share.
template <MatrixConfig C, class Sums>
__device__ void write_transposed_tile(unsigned to, const Sums& sums, int i, int row, int warp) {
    constexpr int matrices = C.turned_rows() / 8;  // along C's rows; each pairs with one 8 columns further
    unsigned pairs[2 * matrices];
    sums.pairs(pairs, i, row / 2);
    if constexpr (C.operand_staged) __syncwarp();  // a warp reads what it writes, 16 of the columns
    const int lane = threadIdx.x % 32;
    const unsigned at = to + C.turned_offset(warp, lane);
#pragma unroll
    for (int j = 0; j + 2 <= matrices; j += 2)
        ptx::store_matrix_x4_transposed(at + j * 8 * C.swizzle_bytes, pairs[2 * j],
                                        pairs[2 * j + 1], pairs[2 * j + 2], pairs[2 * j + 3]);
    if constexpr (matrices % 2 == 1) {
        constexpr int last = matrices - 1;
        // Lanes 0 to 15 alone address them.
        const unsigned half = at + last * 8 * C.swizzle_bytes;
        ptx::store_matrix_x2_transposed(half, pairs[2 * last], pairs[2 * last + 1]);
    }
}

/// The same of pairs, [turned_rows][32 columns of C]: 8 of the columns are a warp's, a matrix a step of 8 rows.
template <MatrixConfig C, class Sums>
__device__ void write_transposed_pairs(unsigned to, const Sums& sums, int i, int row, int warp) {
    constexpr int steps = C.turned_rows() / 8, row_bytes = C.epilogue_columns() * C.result_bytes();
    const int lane = threadIdx.x % 32;
    if constexpr (C.c_type == Type::fp32) {
        float values[2 * steps];
        sums.template take<2>(values, i, row / 2);
        if constexpr (C.operand_staged) __syncwarp();
#pragma unroll
        for (int e = 0; e < 2 * steps; ++e) {
            const int r = e / 2 * 8 + lane % 4 * 2 + e % 2, column = 8 * warp + lane / 4;
            ptx::store_shared_1((to + r * row_bytes + column * 4) ^ (r % 8 << 4), values[e]);
        }
    } else {
        unsigned pairs[steps];
        sums.template pairs<2>(pairs, i, row / 2);
        if constexpr (C.operand_staged) __syncwarp();
        const auto at = [&](int step) { return swizzled<C>(to + (step * 8 + lane % 8) * row_bytes + warp * 16); };  // of this lane's row of it
#pragma unroll
        for (int e = 0; e + 4 <= steps; e += 4)
            ptx::store_matrix_x4_transposed(at(e + lane / 8), pairs[e], pairs[e + 1], pairs[e + 2], pairs[e + 3]);
        constexpr int done = steps / 4 * 4;
        if constexpr (steps - done >= 2) ptx::store_matrix_x2_transposed(at(done + lane / 8 % 2), pairs[done], pairs[done + 1]);
        // One is left: both halves of the instruction write it.
        if constexpr (steps % 2 == 1) ptx::store_matrix_x2_transposed(at(steps - 1), pairs[steps - 1], pairs[steps - 1]);
    }
}

/// The same with swap_ab: the warps of a warpgroup wait for each other twice, and its first one stores.
template <MatrixConfig C, int result, class Sums>
__device__ void store_transposed_tile(const Sums& sums, StoreTarget<C>& target, int s) {
    const int i = s / C.turned_tiles(), row = C.turned_row(s % C.turned_tiles());
    const int warp = ptx::warp_uniform(threadIdx.x % C.warpgroup_threads / 32);
    const unsigned to = target.shared.epilogue_tile(target.warpgroup, target.epilogue_tile);
    const auto meet = [&] {
        ptx::named_barrier_sync(store_barrier + target.warpgroup, C.warpgroup_threads);
    };
    // The store that last read this epilogue tile must be done with it before anyone overwrites it.
    if constexpr (C.operand_staged) {
        take_operand<C>(target, s, warp);
    } else {
        if (warp == 0 && ptx::elect_one())
            ptx::tma_store_wait_read<C.epilogue_tiles_in_flight - 1>();
        meet();
    }
    if constexpr (C.pairs) write_transposed_pairs<C>(to, sums, i, row, warp);
    else if constexpr (C.c_type == Type::fp32) write_transposed_floats<C>(to, sums, i, row, warp);
    else write_transposed_tile<C>(to, sums, i, row, warp);
    ptx::fence_async_proxy();
    meet();
    const bool whole = !C.grouped() || target.rows_inside(row) >= C.turned_rows();
    if (whole && warp == 0 && ptx::elect_one()) {  // the same lane every time: a lane waits for its own stores only
#pragma unroll
        for (int part = 0; part < C.turned_columns() / C.epilogue_columns(); ++part)
            target.template store_box<result>(to + part * C.turned_rows() * C.swizzle_bytes,
                                              C.turned_columns() * i + part * C.epilogue_columns(), row);
        ptx::tma_store_commit();
    }
    if constexpr (C.grouped() && C.ablated != Ablation::store) {
        if (!whole) {
            if (warp == 0 && ptx::elect_one()) ptx::tma_store_commit();  // of nothing: the wait counts commits
            constexpr int row_bytes = C.epilogue_columns() * C.result_bytes();
            for (int part = 0; part < C.turned_columns() / C.epilogue_columns(); ++part)
                store_rows<C, row_bytes>(target.args, target.at.m + row, target.at.n + C.turned_columns() * i + part * C.epilogue_columns(),
                                         target.rows_inside(row), threadIdx.x % C.warpgroup_threads,
                                         C.warpgroup_threads, [&](int r, int chunk) {
                                             return swizzled<C>(to + (part * C.turned_rows() + r) * row_bytes + chunk * 16);
                                         });
        }
    }
    if constexpr (C.operand_staged) follow_operand<C>(target, s);
    target.epilogue_tile = (target.epilogue_tile + 1) % C.epilogue_tiles_in_flight;
}

}  // namespace rooftile
