// What the short kernels of units.cuh are compiled for, and what judges them. Host and device see the same bytes.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

enum class UnitKind : int {
    product,           ///< z = x y
    silu_divide,       ///< z = x / (1 + e^-x), by `/`
    silu_fast_divide,  ///< the same by __fdividef
    silu_reciprocal,   ///< x times the rounded reciprocal of (1 + e^-x)
    silu_no_division,  ///< x (1 + e^-x): no SiLU, but all of it except the division
    rms_norm,          ///< z = x y / sqrt(mean of x^2 in the row + epsilon)
    gemv,              ///< z[row] = sum over columns of x y
};
constexpr int unit_kinds = 7;
constexpr bool is_pointwise(UnitKind kind) { return kind < UnitKind::rms_norm; }

constexpr int unit_columns = 4096;  ///< elements of a row
constexpr int unit_threads = 256;   ///< of a CTA, unless it takes a row
constexpr double unit_epsilon = 1e-5;

/// Elements of 16 bytes: what a thread takes at once.
constexpr int unit_pack(Type type) { return 16 / bytes_of(type); }
/// Threads of a CTA: RMSNorm's has a row, 16 bytes a thread.
constexpr int unit_cta_threads(UnitKind kind, Type type) {
    return kind == UnitKind::rms_norm ? unit_columns / unit_pack(type) : unit_threads;
}
/// What a CTA takes of x.
constexpr long long unit_cta_bytes(UnitKind kind, Type type) {
    const long long row = static_cast<long long>(unit_columns) * bytes_of(type);
    return kind == UnitKind::gemv ? unit_threads / 32 * row : unit_cta_threads(kind, type) * 16LL;
}

/// Against fp64. `worst`: the largest error over what rounding may make of it.
struct UnitVerdict {
    unsigned long long checked, wrong;
    float worst;
};

}  // namespace rooftile
