// C of 16 bits whose rows begin anywhere: through shared memory, eight rows of a warp at a time.
//
// A row is written there as far past 16 bytes as it is in C, so that what lies on whole 16 bytes leaves by one bulk copy, whatever C's base and
// pitch; what is left are up to seven elements at each end, which a quad of lanes stores one by one.
#pragma once

#include "kernels/matrix/matrix_config.hpp"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// A tile whose first element is in row `tile_row` and column `first_column` of C, `pitch` elements from row to row; what is outside its `rows`
/// and `columns` is not stored. `sums.pairs(to, i, j)` gives a thread's j-th and next sums of the i-th wgmma as two elements. `staged`: shared address
/// of the warp's C.staged_bytes(), which each thread's tma_store_wait_read<0>() frees.
template <MatrixConfig C, class Sums>
__device__ void store_rows(const Sums& sums, unsigned short* c, long long pitch, unsigned tile_row, unsigned rows, unsigned first_column, unsigned columns,
                           unsigned staged) {
    static_assert(C.stores_rows() && C.stored_n() % 8 == 0);
    constexpr int quad_lanes = 4, vector = 8;  // elements of 16 bytes
    const int thread = threadIdx.x % C.warpgroup_threads, lane = thread % 32, quarter = lane % quad_lanes;
    const unsigned first_row = tile_row + thread / 32 * 16 + lane / quad_lanes, own = staged + lane / quad_lanes * C.staged_row_pitch();
    const int width = first_column < columns ? static_cast<int>(min(columns - first_column, static_cast<unsigned>(C.stored_n()))) : 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned row = first_row + 64 * i + 8 * half;
            const bool inside = row < rows;
            unsigned short* line = c + row * pitch + first_column;
            // Elements from 16 bytes on to the row's first of this tile.
            const int past = static_cast<int>(reinterpret_cast<unsigned long long>(line) / 2 % vector);
            ptx::tma_store_wait_read<0>();  // the rows before have left
            __syncwarp();
            const unsigned to = own + 2 * (past + 2 * quarter);
            // Words, unless one of the warp's rows begins amid one.
            const bool words = !__any_sync(0xffffffff, past % 2 != 0);
#pragma unroll
            for (int chunk = 0; chunk < C.stored_n() / vector; ++chunk) {
                unsigned pair[1];
                sums.pairs(pair, i, 4 * chunk + 2 * half);
                if (words) ptx::store_shared_1(to + 2 * vector * chunk, __uint_as_float(pair[0]));
                else {
                    ptx::store_shared_half(to + 2 * vector * chunk, static_cast<unsigned short>(pair[0]));
                    ptx::store_shared_half(to + 2 * vector * chunk + 2, static_cast<unsigned short>(pair[0] >> 16));
                }
            }
            ptx::fence_async_proxy();
            __syncwarp();
            const int end = inside ? past + width : 0, begin = past == 0 ? 0 : vector, last = end / vector * vector;
            if (quarter == 0) {
                if (last > begin) ptx::bulk_store(line - past + begin, own + 2 * begin, 2 * (last - begin));
                ptx::tma_store_commit();
            }
#pragma unroll
            for (int e = quarter; e < vector; e += quad_lanes) {
                if (e >= past && e < min(begin, end)) line[e - past] = ptx::load_shared_half(own + 2 * e);
                const int x = max(last, begin) + e;
                if (x < end) line[x - past] = ptx::load_shared_half(own + 2 * x);
            }
        }
    }
}

}  // namespace rooftile
