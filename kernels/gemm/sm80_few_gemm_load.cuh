// The copies of sm80_few_gemm: blocks of A and B into the ring, by all threads, some stages ahead of the products.
//
// A line is copied from the multiple of 16 B at or before its first element on, so that every copy is one of 16 B, whatever
// the leading dimension and the base are. Its last copy takes the line's own bytes alone. Its first would take what is before the line,
// where it does not begin at such a multiple: along K that chunk's own elements pass through registers, so that beside a line's elements
// there are zeros. Along N what is before a line makes sums of columns that nobody stores; only before the matrix nothing is read.
//
// A comes by registers, an element at a time: few of them, which so are in shared memory as if each row began at 16 B, whatever its major,
// leading dimension and base are.
#pragma once

#include "kernels/gemm/sm80_few_gemm_arguments.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/cp_async.cuh"

namespace rooftile {

/// `line` is the address of its first element.
__device__ inline int few_shift_of(const unsigned short* line) { return few_shift(reinterpret_cast<unsigned long long>(line)); }

/// The first chunk of a line of `count` elements that begins amid it: zeros, then elements.
__device__ inline void copy_head(unsigned to, const unsigned short* line, int shift, int count) {
    constexpr int elements = Sm80FewConfig::chunk_elements;
    unsigned short value[elements];
#pragma unroll
    for (int e = 0; e < elements; ++e) value[e] = e >= shift && e - shift < count ? line[e - shift] : 0;
#pragma unroll
    for (int e = 0; e < elements; ++e) ptx::store_element(to + e * Sm80FewConfig::element_bytes, value[e]);
}

/// All threads' copies of one tile's blocks.
template <Sm80FewConfig C>
struct FewLoader {
    const unsigned short *a, *b;  // first row of A; of B the tile's first line along K, or the matrix
    long long lda, ldb;
    int rows, column, columns, k;  // of A; the tile's first of C, and those from there on; of K

    static constexpr int across = C.line_chunks(), down = C.threads() / across;  // threads on a line of B, lines at a time
    static_assert(C.threads() % across == 0 && down % C.shifts == 0 && C.lines() % down == 0,
                  "all lines of B that a thread copies begin alike");

    __device__ const unsigned short* b_line(long long line) const { return b + line * ldb; }

    /// Begins to copy block `block` of K of B to its part of a stage, at `shared`, but for heads.
    __device__ void copy_b(unsigned shared, int block) const {
        constexpr bool along_k = C.along_k();
        const int first = threadIdx.x / across, chunk = threadIdx.x % across;
        const long long begin = along_k ? 0 : static_cast<long long>(block) * C.tile_k;  // the block's first line
        const unsigned short* line = b_line(begin + first);
        const int shift = few_shift_of(line);
        const long long at = (along_k ? static_cast<long long>(block) * across : column / C.chunk_elements) + chunk;  // in the line
        const int bytes = few_copy_bytes(along_k ? k : static_cast<long long>(column) + columns, shift, at);
        const bool head = at == 0 && shift > 0;
        if (along_k && head) return;
        const unsigned short* from = line - shift + at * C.chunk_elements;
        const long long left = (along_k ? columns : k) - begin - first;  // lines
#pragma unroll
        for (int i = 0; i < C.lines() / down; ++i) {
            if (!along_k && i == 0 && head && begin + first == 0) continue;
            ptx::copy_async_filled<C.chunk_bytes>(shared + few_b_place(C, first + i * down, chunk), from + i * (down * ldb),
                                                  i * down < left ? bytes : 0);
        }
    }
    /// Of the first block of K, whose stage is at `shared`: the heads of lines. Waits for its loads.
    __device__ void copy_heads(unsigned shared) const {
        if constexpr (C.along_k()) {
            for (int line = threadIdx.x; line < C.lines(); line += C.threads())
                if (const int shift = few_shift_of(b_line(line)); shift > 0)
                    copy_head(shared + C.a_bytes() + few_b_place(C, line, 0), b_line(line), shift, line < columns ? k : 0);
        } else if (const int shift = few_shift_of(b); shift > 0 && column == 0 && threadIdx.x == 0) {
            copy_head(shared + C.a_bytes() + few_b_place(C, 0, 0), b, shift, columns);
        }
    }
};

/// Blocks of A on their way to the ring, two elements of K a word, a block at a time: what load() asked for, store() leaves, each row from
/// a multiple of 16 B on, wherever it begins in memory. Rows that began differently there would be read from the same banks.
///
/// Along K a warp has every eighth row, and lanes words beside each other; its last word is of the chunk before the block, four lanes a row.
/// Along M a thread has one row, and neighbours the next ones.
template <Sm80FewConfig C>
struct FewTurner {
    const FewLoader<C>& from;
    unsigned short element[C.a_words()][2];

    static constexpr int lanes = 32, block_words = C.tile_k / 2, row_turns = block_words / lanes;  // along K, of a lane in one row
    static constexpr int halo_words = C.chunk_elements / 2;

    /// Of this thread's `i`-th word the row, and the place in it; beyond the row where there is none.
    static __device__ int row(int i) {
        if constexpr (!C.a_along_k()) return threadIdx.x % C.tile_m;
        const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
        return warp + C.warps() * (i + 1 < C.a_words() ? i / row_turns : lane / halo_words);
    }
    static __device__ int word(int i) {
        if constexpr (!C.a_along_k()) return threadIdx.x / C.tile_m + i * C.a_words_at_once();
        const int lane = threadIdx.x % lanes;
        return i + 1 < C.a_words() ? halo_words + i % row_turns * lanes + lane : lane % halo_words;
    }
    static __device__ bool is_inside(int i) {
        if constexpr (C.a_along_k()) return i + 1 < C.a_words() || row(i) < C.tile_m;
        else return threadIdx.x < C.a_words_at_once() * C.tile_m && word(i) < C.a_row_words();
    }

    __device__ void load(int block) {
        const long long first = static_cast<long long>(block) * C.tile_k - C.chunk_elements, along = C.a_along_k() ? 1 : from.lda;
#pragma unroll
        for (int i = 0; i < C.a_words(); ++i) {
            const long long k = first + 2 * word(i);
            const unsigned short* at = from.a + (C.a_along_k() ? row(i) * from.lda + k : k * from.lda + row(i));
            const bool inside = is_inside(i) && row(i) < from.rows && k >= 0;
            element[i][0] = inside && k < from.k ? at[0] : 0;
            element[i][1] = inside && k + 1 < from.k ? at[along] : 0;
        }
    }
    __device__ void store(unsigned shared) const {
#pragma unroll
        for (int i = 0; i < C.a_words(); ++i)
            if (is_inside(i))
                ptx::store_shared_1(shared + row(i) * (C.a_pitch_chunks() * C.chunk_bytes) + word(i) * 4,
                                    __uint_as_float(element[i][0] | unsigned(element[i][1]) << 16));
    }
};

}  // namespace rooftile
