#include "rooftile/fuse/stacks.hpp"

#include <algorithm>

#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/row_vectors.hpp"

namespace rooftile {

bool counts_in_32_bits(const Program& program, int vector_width) {
    constexpr double most = 2147483648.0;  // 2^31
    return double(program.rows) * double(program.columns) / vector_width < most;
}

bool stacks(const Program& p, const FuseConfig& c) {
    if (p.form != FuseForm::pointwise || p.flat || c.vectors_per_thread == 1) return false;
    // Vectors of a warp lie together within a row: of shorter ones they would lie apart.
    if (rows_off_vectors(p, c.vector_width) || p.columns / c.vector_width < warp_threads
        || p.rows % c.vectors_per_thread != 0 || !counts_in_32_bits(p, c.vector_width))
        return false;
    return std::any_of(p.values.begin(), p.values.end(), [](const ProgramValue& v) {
        return v.kind == ValueKind::load && v.level == Level::element && v.access.only_row();
    });
}

}  // namespace rooftile
