// Run-time arguments of sm80_few_gemm, laid out alike on host and device, and where what it copies lies.
#pragma once

#include "kernels/gemm/sm80_few_gemm_config.hpp"

namespace rooftile {

/// Sizes and leading dimensions in elements; C is row-major.
struct Sm80FewArguments {
    int m, n, k;
    int pieces;  ///< of K
    long long lda, ldb, ldc;
    const void *a, *b;
    void* c;
    // Read only where K is in pieces.
    float* sums;        ///< [tile][piece][tile_m][tile_n]
    unsigned* arrived;  ///< of each tile how many pieces, 0 before the launch and after it
    // Read only by a batched kernel.
    int batch;
    long long a_stride, b_stride, c_stride;  ///< elements from one product's matrix to the next's; 0 where all share one
};

/// Elements by which an address is past a multiple of 16 B.
constexpr int few_shift(unsigned long long address) {
    return static_cast<int>(address % Sm80FewConfig::chunk_bytes) / Sm80FewConfig::element_bytes;
}

/// Bytes that a copy of chunk `chunk` of a row takes, counted from the multiple of 16 B at or before the row's first element: those of the
/// row's `k` elements and of what lies before them. What is not taken is zero in shared memory.
constexpr int few_copy_bytes(long long k, int shift, long long chunk) {
    const long long left = (k + shift) * Sm80FewConfig::element_bytes - chunk * Sm80FewConfig::chunk_bytes;
    return chunk < 0 || left <= 0 ? 0 : left < Sm80FewConfig::chunk_bytes ? static_cast<int>(left) : Sm80FewConfig::chunk_bytes;
}

/// Where chunk `chunk` of line `line` of B is in a stage. ldmatrix reads one chunk of eight lines of one shift, `shifts` apart, which
/// must be in eight different groups of banks.
constexpr unsigned few_b_place(const Sm80FewConfig& c, int line, int chunk) {
    return unsigned((line * c.line_chunks() + (chunk ^ line / c.shifts % c.bank_chunks)) * c.chunk_bytes);
}

/// Line `i` of those 16 of B that a warp multiplies at once, all of shift number `warp`.
constexpr int few_b_line(int warp, int tile, int i) { return warp + Sm80FewConfig::shifts * (Sm80FewConfig::mma_m * tile + i); }

/// Where element `begin` of a block, counted as B's is from the multiple of 16 B at or before its first line, is in a row of A: in elements
/// from the row's begin in the stage, whose first chunk is the one before the block's. Lines of B along K of shift s begin s elements earlier.
constexpr int few_a_element(int begin) { return Sm80FewConfig::chunk_elements + begin; }

/// Blocks of K of rows of which the furthest begins `shift` elements past a multiple of 16 B.
constexpr long long few_blocks(const Sm80FewConfig& c, long long k, int shift) { return (k + shift + c.tile_k - 1) / c.tile_k; }

/// CTAs of a launch, a piece of a tile each.
constexpr long long few_tiles(const Sm80FewConfig& c, long long n, long long batch) { return batch * ((n - 1) / c.tile_n + 1); }

}  // namespace rooftile
