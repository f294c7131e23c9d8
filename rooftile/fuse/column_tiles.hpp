// How the threads of reductions of columns lie over a tensor: what search, model, source and launch all count.
//
// A CTA's threads lie `across` a row, a vector each, and `down` the rows. Vectors are aligned, rows need not be:
//   whole vectors a row   every thread has the same columns in every row
//   short rows            `fold` rows together are whole vectors and no longer than a CTA's threads: one row of theirs is taken
//                         for a row, and its parts are added at the end
//   others                vectors have the same columns again `period` rows below; `down` is a multiple of that, so every
//                         thread keeps its columns. One more thread across has what a row's shift pushes out of the tile
#pragma once

#include <cstdint>

#include "rooftile/fuse/plan.hpp"

namespace rooftile {

struct ColumnTiles {
    int across = 1, down = 1;
    int fold = 1;             ///< rows of the tensor in one of the kernel's
    int period = 1;           ///< rows of the kernel after which vectors have the same columns
    std::int64_t row = 1;     ///< elements of one of the kernel's rows
    std::int64_t rows = 0;    ///< of the kernel, the last of which may be a part
    std::int64_t width = 1;   ///< elements of a row that a tile has, but for the last
    std::int64_t tiles = 0;   ///< CTAs side by side; row_splits of them below one another
};
ColumnTiles column_tiles(const Program& program, const FuseConfig& config);

/// Rows after which aligned vectors of `vector_width` elements have the same columns again.
int column_period(const Program& program, int vector_width);

/// Additions that a value may go through one after the other, at most: the reference allows column_roundings() of them
/// (kernels/expression/row_meaning.hpp).
double column_depth(const Program& program, const FuseConfig& config);

/// Threads that share four columns of what a tile's CTAs left, where one of the CTAs adds it up.
int column_parts(const Program& program, const FuseConfig& config);

/// Reductions of columns, each with a place of its own in shared memory and in the workspace.
int column_reductions(const Program& program);
/// Static shared memory of a CTA, bytes: what its threads tell each other, and the columns of each reduction.
std::int64_t column_shared_bytes(const Program& program, const FuseConfig& config);
/// Bytes of the counters that a workspace begins with, one a tile, and of the sums of all CTAs behind them.
std::int64_t column_counter_bytes(const Program& program, const FuseConfig& config);
std::int64_t column_partial_bytes(const Program& program, const FuseConfig& config);

}  // namespace rooftile
