// Epilogue tiles of C as the accumulators have it: each warp writes and stores rows of its own.
#pragma once

#include "kernels/matrix/epilogue_tile.cuh"
#include "kernels/matrix/store_ragged.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// A warp's share of an epilogue tile, [warp_rows][epilogue_columns], to `to`. `i`: of the tile's 64-row wgmmas; `half`: which rows
/// of the warp's 16; `column`: of the tile.
template <MatrixConfig C, class Sums>
__device__ void write_epilogue_tile(unsigned to, const Sums& sums, int i, int half, int column) {
    constexpr int epilogue_columns = C.epilogue_columns();
    constexpr int row_bytes = epilogue_columns * C.result_bytes();
    const int lane = threadIdx.x % 32;
    if constexpr (C.c_type == Type::fp32) {
        float values[epilogue_columns / 2];  // a thread has two neighbours of each eight, in two rows
        sums.take(values, i, column / 2);
#pragma unroll
        for (int e = 0; e < epilogue_columns / 2; e += 2) {
            const int row = lane / 4 + e / 2 % 2 * 8, x = e / 4 * 8 + lane % 4 * 2;
            ptx::store_shared_2(swizzled<C>(to + row * row_bytes + x * 4), &values[e]);
        }
    } else if constexpr (C.result_bytes() == 1) {
        // Two bytes a thread of each eight columns. Neighbours give each other theirs of every other eight, and write words.
        unsigned pairs[epilogue_columns / 4];
        sums.pairs(pairs, i, column / 2);
        const bool odd = lane % 2 != 0;
#pragma unroll
        for (int e = 0; e < epilogue_columns / 4; e += 4) {
#pragma unroll
            for (int down = 0; down < 2; ++down) {  // rows of eight
                const unsigned first = pairs[e + down], second = pairs[e + 2 + down];
                const unsigned other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
                const unsigned word = odd ? other | second << 16 : first | other << 16;
                ptx::store_shared(swizzled<C>(to + (lane / 4 + 8 * down) * row_bytes + e * 4 + (odd ? 8 : 0) + lane % 4 / 2 * 4), word);
            }
        }
    } else if constexpr (C.wide_epilogue_tiles()) {
        unsigned pairs[epilogue_columns / 8];  // of one half, one from each matrix
        sums.template pairs<2>(pairs, i, column / 2 + 2 * half);
        if constexpr (C.operand_staged) __syncwarp();  // its elements are read by other lanes than those that write there
        const unsigned row = to + lane % 8 * row_bytes;
#pragma unroll
        for (int j = 0; j + 32 <= epilogue_columns; j += 32) {
            const unsigned* d = &pairs[j / 8];
            ptx::store_matrix_x4(row + (j + lane / 8 * 8) * 2, d[0], d[1], d[2], d[3]);
        }
        constexpr int rest = epilogue_columns / 32 * 32;  // 16 columns: the sectors are an odd number
        ptx::store_matrix_x2(row + (rest + lane / 8 % 2 * 8) * 2, pairs[rest / 8], pairs[rest / 8 + 1]);
    } else {
        unsigned pairs[epilogue_columns / 4];
        sums.pairs(pairs, i, column / 2);
        if constexpr (C.operand_staged) __syncwarp();
        const unsigned row = lane % 16;
        if constexpr (epilogue_columns == 8) {
            ptx::store_matrix_x2(to + row * row_bytes, pairs[0], pairs[1]);
        } else {
#pragma unroll
            for (int j = 0; j < epilogue_columns; j += 16) {
                const unsigned* d = &pairs[j / 4];
                ptx::store_matrix_x4(swizzled<C>(to + row * row_bytes + (j * 2 + lane / 16 * 16)), d[0], d[1], d[2], d[3]);
            }
        }
    }
}

/// Each warp stores its own rows and waits for no other warp.
template <MatrixConfig C, int result, class Sums>
__device__ void store_upright_tile(const Sums& sums, StoreTarget<C>& target, int s) {
    const int warp = ptx::warp_uniform(threadIdx.x % C.warpgroup_threads / 32);
    const EpilogueTilePlace<C> place(s, warp);
    const unsigned from = target.shared.epilogue_tile(target.warpgroup, target.epilogue_tile) + epilogue_part<C>(warp);
    // The store that last read this epilogue tile must be done with it before anyone overwrites it.
    if constexpr (C.operand_staged) take_operand<C>(target, s, warp);
    else if (ptx::elect_one()) ptx::tma_store_wait_read<C.epilogue_tiles_in_flight - 1>();
    __syncwarp();
    write_epilogue_tile<C>(from, sums, place.i, place.half, place.column);
    ptx::fence_async_proxy();
    __syncwarp();
    const bool whole = !C.grouped() || target.rows_inside(place.row) >= C.warp_rows();
    if (ptx::elect_one()) {  // the same lane every time: a lane waits for its own stores only
        if (whole) target.template store_box<result>(from, place.column, place.row);
        ptx::tma_store_commit();  // of nothing too: the wait counts commits
    }
    if constexpr (C.grouped() && C.ablated != Ablation::store) {
        if (!whole) {
            constexpr int row_bytes = C.epilogue_columns() * C.result_bytes();
            const unsigned mask = C.epilogue_swizzle_bytes() > 0 ? row_bytes / 16 - 1 : 0;
            store_rows<C, row_bytes>(target.args, target.at.m + place.row, target.at.n + place.column, target.rows_inside(place.row), threadIdx.x % 32, 32,
                                     [&](int row, int chunk) {
                                         const unsigned at = from + row * row_bytes + chunk * 16;
                                         return at ^ ((at >> 7 & mask) << 4);
                                     });
        }
    }
    if constexpr (C.operand_staged) follow_operand<C>(target, s);
    target.epilogue_tile = (target.epilogue_tile + 1) % C.epilogue_tiles_in_flight;
}

}  // namespace rooftile
