#include "rooftile/fuse/row_vectors.hpp"

#include <algorithm>
#include <numeric>

#include "rooftile/units.hpp"

namespace rooftile {

bool rows_off_vectors(const Program& p, int vector_width) { return !p.flat && p.columns % vector_width != 0; }

std::int64_t max_row_vectors(const Program& p, int vector_width) {
    // Rows begin at multiples of what columns and vectors share.
    const std::int64_t shared = std::gcd(p.columns, std::int64_t(vector_width));
    const std::int64_t before = p.rows > 1 ? vector_width - shared : 0;
    return rows_off_vectors(p, vector_width) ? ceil_div(before + p.columns, vector_width)
                                             : p.columns / vector_width;
}

std::int64_t min_row_vectors(const Program& p, int vector_width) { return ceil_div(p.columns, vector_width); }

std::int64_t vectors_of_all(const Program& p, int vector_width) {
    if (rows_off_vectors(p, vector_width)) return ceil_div(p.rows * p.columns, vector_width);
    return p.rows * (p.columns / vector_width);
}

int vector_alignment(const Program& p, int vector_width, Element element) {
    constexpr int access_bytes = 16;
    const int bytes = vector_width * bytes_of(element);
    return rows_off_vectors(p, vector_width) ? bytes : std::min(access_bytes, bytes);
}

}  // namespace rooftile
