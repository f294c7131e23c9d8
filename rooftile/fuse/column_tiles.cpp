#include "rooftile/fuse/column_tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t quad = 4;  // floats of an access

/// Of a tile, as kernels/fuse/columns.cuh has them.
std::int64_t found_floats(const ColumnTiles& t, const FuseConfig& c) {
    return ceil_div(std::int64_t(t.across) * c.vector_width, quad) * quad;
}

}  // namespace

int column_period(const Program& p, int vector_width) {
    return int(vector_width / std::gcd(std::max<std::int64_t>(1, p.columns), std::int64_t(vector_width)));
}

ColumnTiles column_tiles(const Program& p, const FuseConfig& c) {
    ColumnTiles t;
    t.across = c.threads_per_row, t.down = c.threads / c.threads_per_row;
    const int period = column_period(p, c.vector_width);
    const bool folds = period > 1 && p.columns * period <= std::int64_t(t.across) * c.vector_width;
    t.fold = folds ? period : 1;
    t.period = folds ? 1 : period;
    t.row = p.columns * t.fold;
    t.rows = ceil_div(p.rows, std::int64_t(t.fold));
    // Vectors begin up to period - 1 steps of a vector's shared columns before a row.
    const std::int64_t shift = t.period > 1 ? c.vector_width - c.vector_width / t.period : 0;
    const std::int64_t reach = std::int64_t(t.across) * c.vector_width;
    t.width = reach >= shift + t.row ? t.row : reach - (t.period > 1 ? c.vector_width : 0);
    t.tiles = t.row == 0 ? 0 : ceil_div(t.row, t.width);
    return t;
}

double column_depth(const Program& p, const FuseConfig& c) {
    const ColumnTiles t = column_tiles(p, c);
    const double turns = std::ceil(double(t.rows) / (double(t.down) * c.vectors_per_thread * c.row_splits));
    // Three more by fours.
    const auto by_fours = [](double count) { return 3 * std::ceil(std::log2(count) / 2); };
    const double cta = by_fours(double(t.down) / t.period) + t.fold * t.period;
    const double parts = column_parts(p, c);
    const double splits = c.row_splits == 1 ? 0 : std::ceil(c.row_splits / parts) + by_fours(parts);
    // A last part of a row is one more.
    return c.vectors_per_thread + turns + 1 + cta + splits;
}

int column_parts(const Program& p, const FuseConfig& c) {
    const ColumnTiles t = column_tiles(p, c);
    const std::int64_t columns = t.fold > 1 ? p.columns : std::min(t.width, t.row);
    const std::int64_t quads = std::max<std::int64_t>(1, ceil_div(columns, quad));
    return int(std::clamp<std::int64_t>(ceil_div(std::int64_t(c.row_splits), std::int64_t(fuse::gathered_splits)), 1,
                                        std::max<std::int64_t>(1, c.threads / quads)));
}

int column_reductions(const Program& p) {
    return int(std::ranges::count(p.values, ValueKind::reduce, &ProgramValue::kind));
}

std::int64_t column_shared_bytes(const Program& p, const FuseConfig& c) {
    const ColumnTiles t = column_tiles(p, c);
    return 4 * (std::int64_t(c.threads) * std::max<std::int64_t>(c.vector_width, quad) + column_reductions(p) * found_floats(t, c));
}

std::int64_t column_counter_bytes(const Program& p, const FuseConfig& c) {
    return ceil_div(4 * column_tiles(p, c).tiles, std::int64_t(16)) * 16;
}

std::int64_t column_partial_bytes(const Program& p, const FuseConfig& c) {
    const ColumnTiles t = column_tiles(p, c);
    return 4ll * column_reductions(p) * t.tiles * c.row_splits * found_floats(t, c);
}

}  // namespace rooftile
