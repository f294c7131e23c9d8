// The tile of sums that kernels by packed weights store together: read by the kernels and by their configurations.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"

namespace rooftile {

/// The sums of `threads` threads: `rows` of C by `columns`. Each warp has 16 columns, lanes l of it columns l / 4 and that + 8 of rows
/// 2 (l % 4) and the next, every 8 rows again. They pass through shared memory, `rows_at_once` of them, so that neighbours are stored together.
struct QuantisedStoreShape {
    int rows, columns;
    int rows_at_once;
    int k_parts;  ///< of K, whose sums other warps have
    int threads;
    Type type;
    QuantisedLayout layout;
    /// Parts of a tile that CTAs share leave as threads have their sums, and whoever comes last has the tile's in registers: where these are many
    /// beside the sums. Else they leave by pairs, as results do.
    bool parts_by_thread = false;

    constexpr int row_tiles() const { return rows / 8; }
    constexpr int row_groups() const { return columns / 16; }
    /// Rows so far apart that a warp's sums fall into different banks.
    constexpr int pitch() const { return columns + 4; }
    constexpr int bytes() const { return k_parts * rows_at_once * pitch() * 4; }
    friend constexpr bool operator==(const QuantisedStoreShape&, const QuantisedStoreShape&) = default;
};

}  // namespace rooftile
