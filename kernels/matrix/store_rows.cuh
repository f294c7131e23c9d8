// C of 16 bits straight from registers, whatever its rows begin at: whole 16-byte stores, and elements at a row's ends.
//
// A quad of lanes has 8 neighbouring columns of a row in each wgmma chunk, two a lane. Four chunks are transposed among them, so that a lane has
// all 8 columns of one: 16 bytes. Where the row does not begin at 16 bytes, a lane moves its chunk on by what the row is past them, takes the
// end of the chunk in front from its neighbour, and stores the 16 bytes that memory has there. What is left are the first chunk's
// beginning and the last one's end.
#pragma once

#include "kernels/matrix/matrix_config.hpp"

namespace rooftile {

constexpr int quad_lanes = 4, chunk_columns = 8;

/// Lane q of a quad gives word t of all chunks, and gets all words of chunk q.
__device__ inline void transpose_in_quad(unsigned (&w)[quad_lanes], int lane) {
    constexpr unsigned all = 0xffffffff;
#pragma unroll
    for (int t = 0; t < quad_lanes; t += 2) {  // lanes beside each other, chunks beside each other
        const bool odd = lane & 1;
        const unsigned got = __shfl_xor_sync(all, odd ? w[t] : w[t + 1], 1);
        if (odd) w[t] = got;
        else w[t + 1] = got;
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
        const bool upper = lane & 2;
        const unsigned got = __shfl_xor_sync(all, upper ? w[t] : w[t + 2], 2);
        if (upper) w[t] = got;
        else w[t + 2] = got;
    }
}

/// The 8 elements that end `past` before the end of `own`; `front` is the chunk before it.
__device__ inline void moved_on(unsigned (&out)[4], const unsigned (&front)[4], const unsigned (&own)[4], unsigned past) {
    const unsigned window[8] = {front[0], front[1], front[2], front[3], own[0], own[1], own[2], own[3]};
    const unsigned first = 8 - past, word = first / 2;
    unsigned by_two[6], by_one[5];
#pragma unroll
    for (int i = 0; i < 6; ++i) by_two[i] = word & 2 ? window[i + 2] : window[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) by_one[i] = word & 1 ? by_two[i + 1] : by_two[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned amid = by_one[i] >> 16 | by_one[i + 1] << 16;
        out[i] = past == 0 ? own[i] : past & 1 ? amid : by_one[i];
    }
}

/// A tile whose first element is in row `tile_row` and column `first_column` of C, `pitch` elements from row to row; what is outside its `rows`
/// and `columns` is not stored. `sums.pairs(to, i, j)` gives a thread's j-th and next sums of the i-th wgmma as two elements.
template <MatrixConfig C, class Sums>
__device__ void store_rows(const Sums& sums, unsigned short* c, long long pitch, unsigned tile_row, unsigned rows, unsigned first_column, unsigned columns) {
    static_assert(C.result_bytes() == 2 && C.stored_n() % chunk_columns == 0);
    constexpr int chunks = C.stored_n() / chunk_columns;
    constexpr unsigned all = 0xffffffff;
    const int thread = threadIdx.x % C.warpgroup_threads, lane = thread % 32, quarter = lane % quad_lanes;
    const unsigned first_row = tile_row + thread / 32 * 16 + lane / 4;
    const int width = first_column < columns ? static_cast<int>(min(columns - first_column, static_cast<unsigned>(C.stored_n()))) : 0;
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned row = first_row + 64 * i + 8 * half;
            const bool inside = row < rows;
            unsigned short* line = c + row * pitch + first_column;
            // Elements from 16 bytes on to the row's first of this tile.
            const int past = static_cast<int>(reinterpret_cast<unsigned long long>(line) / 2 % chunk_columns);
            unsigned own[4] = {}, before[4] = {};  // before: the chunk in front of the quad's first
#pragma unroll
            for (int first = 0; first < chunks; first += quad_lanes) {
#pragma unroll
                for (int t = 0; t < quad_lanes; ++t) {
                    own[t] = 0;
                    unsigned pair[1];
                    if (first + t < chunks && inside) sums.pairs(pair, i, 4 * (first + t) + 2 * half), own[t] = pair[0];
                }
                transpose_in_quad(own, lane);
                unsigned front[4], out[4];
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    const unsigned moved = __shfl_sync(all, own[t], (lane & ~3) | ((lane + 3) & 3));
                    front[t] = quarter == 0 ? before[t] : moved;
                    before[t] = moved;
                }
                moved_on(out, front, own, static_cast<unsigned>(past));
                const int chunk = first + quarter, begin = chunk == 0 ? past : 0, end = min(8, width - chunk_columns * chunk + past);
                if (!inside || chunk >= chunks) continue;
                unsigned short* to = line + chunk_columns * chunk - past;
                if (begin == 0 && end == 8) {
                    struct alignas(16) Vector {
                        unsigned word[4];
                    };
                    *reinterpret_cast<Vector*>(to) = {out[0], out[1], out[2], out[3]};
                } else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        if (e >= begin && e < end) to[e] = static_cast<unsigned short>(out[e / 2] >> 16 * (e % 2));
                }
            }
            constexpr int last = chunks - 1;
            if (!inside || quarter != last % quad_lanes) continue;
#pragma unroll
            for (int e = 0; e < 8; ++e)
                if (e >= 8 - past && chunk_columns * last + e < width)
                    line[chunk_columns * last + e] = static_cast<unsigned short>(own[e / 2] >> 16 * (e % 2));
        }
    }
}

}  // namespace rooftile
