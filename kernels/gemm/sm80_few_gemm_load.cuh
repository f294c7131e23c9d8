// The copies of sm80_few_gemm: blocks of A and B into the ring, by all threads, some stages ahead of the products.
//
// A row is copied from the multiple of 16 B at or before its first element on, so that every copy is one of 16 B, whatever
// the leading dimension and the base are. Its last copy takes the row's own bytes alone. Its first would take what lies before the row,
// where it does not begin at such a multiple: that chunk's own elements pass through registers. So nothing outside of an
// operand's rows is read, and beside them there are zeros.
#pragma once

#include "kernels/gemm/sm80_few_gemm_arguments.hpp"
#include "kernels/ptx/cp_async.cuh"

namespace rooftile {

/// `row` is the address of its first element.
__device__ inline int few_shift_of(const unsigned short* row) { return few_shift(reinterpret_cast<unsigned long long>(row)); }

/// The first chunk of a row that begins amid it: zeros, then elements.
__device__ inline void copy_head(unsigned to, const unsigned short* row, int shift, int k) {
    constexpr int elements = Sm80FewConfig::chunk_elements;
    unsigned short value[elements];
#pragma unroll
    for (int e = 0; e < elements; ++e) value[e] = e >= shift && e - shift < k ? row[e - shift] : 0;
#pragma unroll
    for (int e = 0; e < elements; ++e) ptx::store_element(to + e * Sm80FewConfig::element_bytes, value[e]);
}

/// All threads' copies of one tile's blocks.
template <Sm80FewConfig C>
struct FewLoader {
    const unsigned short *a, *b;  // first row of A, and of B in the tile
    long long lda, ldb;
    int rows, columns, k;  // of A; of B in the tile, may be more than its rows; of K

    static constexpr int across = C.row_chunks(), down = C.threads() / across;  // threads on a row of B, rows at a time
    static_assert(C.threads() % across == 0 && down % C.shifts == 0, "all rows of B that a thread copies begin alike");

    __device__ const unsigned short* a_row(int row) const { return a + row * lda; }
    __device__ const unsigned short* b_row(int row) const { return b + row * ldb; }

    /// Begins to copy block `block` of K to the stage at `shared`, but for heads.
    __device__ void copy(unsigned shared, int block) const {
        copy_b(shared + C.a_bytes(), block);
        copy_a(shared, block);
    }
    __device__ void copy_b(unsigned shared, int block) const {
        const int first = threadIdx.x / across, chunk = threadIdx.x % across;
        const unsigned short* row = b_row(first);
        const int shift = few_shift_of(row);
        const long long at = static_cast<long long>(block) * across + chunk;  // in the row
        const int bytes = few_copy_bytes(k, shift, at);
        if (at == 0 && shift > 0) return;
        const unsigned short* from = row - shift + at * C.chunk_elements;
#pragma unroll
        for (int i = 0; i < C.tile_n / down; ++i)
            ptx::copy_async_filled<C.chunk_bytes>(shared + few_b_place(C, first + i * down, chunk), from + i * (down * ldb),
                                                  first + i * down < columns ? bytes : 0);
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
    /// Of the first block of K, whose stage is at `shared`: the heads of rows. Waits for its loads.
    __device__ void copy_heads(unsigned shared) const {
        for (int row = threadIdx.x; row < C.tile_n; row += C.threads())
            if (const int shift = few_shift_of(b_row(row)); shift > 0)
                copy_head(shared + C.a_bytes() + few_b_place(C, row, 0), b_row(row), shift, row < columns ? k : 0);
        for (int row = threadIdx.x; row < C.tile_m; row += C.threads())
            if (const int shift = few_shift_of(a_row(row)); shift > 0)
                copy_head(shared + (row * C.a_pitch_chunks() + 1) * C.chunk_bytes, a_row(row), shift, row < rows ? k : 0);
    }
};

}  // namespace rooftile
