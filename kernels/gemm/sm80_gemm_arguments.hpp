// Run-time arguments of sm80_gemm, laid out alike on host and device, and what a launch derives from them.
#pragma once

#include "kernels/gemm/sm80_gemm_config.hpp"

namespace rooftile {

/// Sizes and leading dimensions in elements; C is row-major.
struct Sm80GemmArguments {
    int m, n, k;
    int order;  ///< an Order
    int group;  ///< rows of tiles taken together where the order is grouped or serpentine
    long long lda, ldb, ldc;
    const void *a, *b;
    void* c;
    /// The tiles in the scheduled order, row << 16 | column; null where `order` has a closed form.
    const unsigned* tiles;
    // Read only by a batched kernel.
    int batch;
    long long a_stride, b_stride, c_stride;  ///< elements from one product's matrix to the next's; 0 where all share one
};

/// Bytes of the widest copy that an operand allows: its address and its rows are multiples of it.
constexpr int sm80_copy_bytes(unsigned long long address, long long leading_dimension) {
    const unsigned long long bits =
        address | static_cast<unsigned long long>(leading_dimension) * Sm80GemmConfig::element_bytes;
    for (int bytes = 16; bytes > 2; bytes /= 2)
        if (bits % static_cast<unsigned>(bytes) == 0) return bytes;
    return 2;
}

/// Whether copies reach past the end of an operand's rows; `extent`: elements in a row.
constexpr bool sm80_partial_copies(long long extent, int copy_bytes) {
    return extent * Sm80GemmConfig::element_bytes % copy_bytes != 0;
}

/// Whether C can be written 16 bytes at a time: each chunk is then inside of C or outside, as a whole.
constexpr bool sm80_vector_store(unsigned long long address, long long ldc, long long n) {
    return sm80_copy_bytes(address, ldc) == 16 && n % Sm80GemmConfig::chunk_elements == 0;
}

/// Tiles of C.
constexpr long long sm80_tiles(const Sm80GemmConfig& config, long long m, long long n) {
    return ((m - 1) / config.tile_m + 1) * ((n - 1) / config.tile_n + 1);
}

/// CTAs of a launch; `resident`: that the GPU holds at once.
constexpr long long sm80_grid(const Sm80GemmConfig& config, long long m, long long n, long long batch, long long resident) {
    const long long tiles = batch * sm80_tiles(config, m, n);
    return config.persistent && resident < tiles ? resident : tiles;
}

}  // namespace rooftile
