// The copies of sm80_few_gemm: blocks of A and B into the ring, by all threads, some stages ahead of the products.
//
// A line is copied from the multiple of 16 B at or before its first element on, so that every copy is one of 16 B, whatever
// the leading dimension and the base are. Its last copy takes the line's own bytes alone. Its first would take what is before the line,
// where it does not begin at such a multiple: along K that chunk's own elements pass through registers, so that beside a line's elements
// there are zeros. Along N what is before a line makes sums of columns that nobody stores; only before the matrix nothing is read.
//
// An m-major A is turned on its way: elements come by registers, and are in shared memory as those of a k-major one that begins at 16 B.
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

    __device__ const unsigned short* a_row(int row) const { return a + row * lda; }
    __device__ int a_shift(int row) const {
        if constexpr (C.a_along_k()) return few_shift_of(a_row(row));
        else return 0;
    }
    __device__ const unsigned short* b_line(long long line) const { return b + line * ldb; }

    /// Begins to copy block `block` of K to the stage at `shared`, but for heads.
    __device__ void copy(unsigned shared, int block) const {
        copy_b(shared + C.a_bytes(), block);
        if constexpr (C.a_along_k()) copy_a(shared, block);
    }
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
    __device__ void copy_a(unsigned shared, int block) const {
        constexpr int chunks = C.row_chunks() + C.halo_chunks, all = C.tile_m * chunks;
#pragma unroll 1
        for (int i = threadIdx.x; i < all; i += C.threads()) {
            const int row = i / chunks, chunk = i % chunks;
            const unsigned short* from = a_row(row);
            const int shift = few_shift_of(from);
            const long long at = static_cast<long long>(block) * C.row_chunks() + chunk - 1;
            if (at == 0 && shift > 0) continue;
            const int bytes = row < rows ? few_copy_bytes(k, shift, at) : 0;
            ptx::copy_async_filled<C.chunk_bytes>(shared + (row * C.a_pitch_chunks() + chunk) * C.chunk_bytes,
                                                  from - shift + at * C.chunk_elements, bytes);
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
        if constexpr (C.a_along_k()) {
            for (int row = threadIdx.x; row < C.tile_m; row += C.threads())
                if (const int shift = few_shift_of(a_row(row)); shift > 0)
                    copy_head(shared + (row * C.a_pitch_chunks() + 1) * C.chunk_bytes, a_row(row), shift, row < rows ? k : 0);
        }
    }
};

/// Blocks of an m-major A on their way to the ring, two elements of K a word, a block at a time: what load() asked for, store() leaves. A
/// thread has a row; its neighbours have the next ones, whose elements are beside its own.
template <Sm80FewConfig C>
struct FewTurner {
    const FewLoader<C>& from;
    unsigned short element[C.a_words()][2];

    static __device__ int row() { return threadIdx.x % C.tile_m; }
    /// Of this thread's words of its row the `i`-th.
    static __device__ int word(int i) { return threadIdx.x / C.tile_m + i * C.a_words_at_once(); }
    static __device__ bool is_inside(int i) { return threadIdx.x < C.a_words_at_once() * C.tile_m && word(i) < C.a_row_words(); }

    __device__ void load(int block) {
        long long k = static_cast<long long>(block) * C.tile_k - C.chunk_elements + 2 * word(0);
        const unsigned short* at = from.a + k * from.lda + row();
#pragma unroll
        for (int i = 0; i < C.a_words(); ++i) {
            const bool inside = is_inside(i) && row() < from.rows && k >= 0;
            element[i][0] = inside && k < from.k ? at[0] : 0;
            element[i][1] = inside && k + 1 < from.k ? at[from.lda] : 0;
            k += 2 * C.a_words_at_once(), at += 2 * C.a_words_at_once() * from.lda;
        }
    }
    __device__ void store(unsigned shared) const {
        const unsigned to = shared + row() * (C.a_pitch_chunks() * C.chunk_bytes);
#pragma unroll
        for (int i = 0; i < C.a_words(); ++i)
            if (is_inside(i)) ptx::store_shared_1(to + word(i) * 4, __uint_as_float(element[i][0] | unsigned(element[i][1]) << 16));
    }
};

}  // namespace rooftile
