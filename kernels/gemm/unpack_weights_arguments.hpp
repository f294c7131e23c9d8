// Run-time arguments of unpack_weights, laid out alike on host and device.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"
#include "kernels/gemm/widen_rows_arguments.hpp"

namespace rooftile {

inline constexpr int unpack_threads = 256;  ///< of a CTA: a warp has 16 rows by 64 of K of a block

struct UnpackArguments {
    const unsigned char* weights;  ///< as QuantisedLayout has them
    unsigned short* to;            ///< [n][pitch] numbers of 16 bits, each row on a 16-byte boundary
    int n, k;
    long long pitch;  ///< elements from row to row, k or more in whole 16 bytes
    WidenedRows rows;      ///< of A, where these are of 8 bits,
    unsigned weight_ctas;  ///< by the CTAs behind so many
};

/// Blocks of packed weights that a CTA unpacks one after the other: several where weights are places in a table, so that the table, which
/// each CTA makes, is a small part of its work.
constexpr int unpack_blocks_per_cta(const QuantisedLayout& layout) { return layout.is_table() ? 4 : 1; }
constexpr long long unpack_ctas(const QuantisedLayout& layout, long long n, long long k) {
    const int blocks = unpack_blocks_per_cta(layout);
    return (QuantisedLayout::row_blocks(n) * QuantisedLayout::k_blocks(k) + blocks - 1) / blocks;
}

}  // namespace rooftile
