// Groups of rows: A and C are one behind the other, group g has rows offsets[g] .. offsets[g + 1] of both and a matrix of B of
// its own. The offsets are read on the device, so that a captured launch serves other counts.
//
// Every CTA counts the groups' rows of tiles once: shared memory then says which group a tile is of, by a search of halves
// that stands beside the copies or products of the tile before. A tile at a group's end reads rows of the next group, which
// meet nothing but sums that nobody stores; of a box of C that would reach into the next group the rows before it go out
// by ordinary stores, and what lies wholly behind the end does not.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/sm90_gemm_config.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// In shared memory, from `at` on: the rows of cluster tiles of all groups up to each one, then where each begins, and the end.
template <Sm90GemmConfig C>
struct Sm90Groups {
    unsigned at;

    __device__ int tiles_up_to(int group) const { return int(ptx::load_shared_word(at + 4 * group)); }
    __device__ int first_row(int group) const { return int(ptx::load_shared_word(at + 4 * (C.group_slots + group))); }
    __device__ int tiles(int groups) const { return tiles_up_to(groups - 1); }

    /// By the first warp, before anyone asks. What the offsets say beyond A's rows is not taken.
    __device__ void count(const GemmArguments& args) const {
        constexpr int of_a_lane = C.group_slots / 32, cluster_rows = C.cluster_m * C.tile_m;
        const int lane = threadIdx.x % 32, first = lane * of_a_lane;
        int begin[of_a_lane + 1], before = 0;
#pragma unroll
        for (int i = 0; i <= of_a_lane; ++i)  // all on their way before the first is used
            begin[i] = args.offsets[min(first + i, args.groups)];
#pragma unroll
        for (int i = 0; i <= of_a_lane; ++i) begin[i] = max(0, min(begin[i], args.m));
        int up_to[of_a_lane];
#pragma unroll
        for (int i = 0; i < of_a_lane; ++i) {
            const int rows = max(0, begin[i + 1] - begin[i]);
            up_to[i] = before += (rows + cluster_rows - 1) / cluster_rows;
        }
        int all = before;  // of the lanes up to this one
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int lower = __shfl_up_sync(0xffffffffu, all, step);
            if (lane >= step) all += lower;
        }
#pragma unroll
        for (int i = 0; i < of_a_lane; ++i) {
            ptx::store_shared(at + 4 * (first + i), unsigned(all - before + up_to[i]));
            ptx::store_shared(at + 4 * (C.group_slots + first + i), unsigned(begin[i]));
        }
        if (lane == 31) ptx::store_shared(at + 8 * C.group_slots, unsigned(begin[of_a_lane]));
    }
    /// The group that has row `tile` of all groups' cluster tiles, which are more than that.
    __device__ int group_of(int tile) const {
        int group = 0;
#pragma unroll
        for (int step = C.group_slots / 2; step > 0; step /= 2)
            if (tiles_up_to(group + step - 1) <= tile) group += step;
        return group;
    }
};

/// `rows` rows of an epilogue tile from shared memory to C, 16 B a thread, by `threads` threads of which this is `thread`. `chunk`
/// says where in shared memory 16 B of a row lie; `x`: C's column of the first, at least one of which is C's.
template <Sm90GemmConfig C, int row_bytes, class Chunk>
__device__ void store_rows(const GemmArguments& args, int m, int x, int rows, int thread, int threads, Chunk chunk) {
    constexpr int chunks = row_bytes / 16, elements = 16 / C.result_bytes();
    for (int i = thread; i < rows * chunks; i += threads) {
        const int row = i / chunks, of_row = i % chunks, column = x + of_row * elements;
        if (column >= args.n) continue;  // C's rows are whole 16 B
        ptx::Words<16> words;
        ptx::load_shared(words, chunk(row, of_row));
        char* to = static_cast<char*>(args.c) + ((m + row) * args.ldc + column) * C.result_bytes();
        ptx::store_words(to, words);
    }
}

}  // namespace rooftile
