// Records of the kernel before its last tiles moved back to end with C: it loaded what they had outside, too, which took longer
// than rows that are there. Where that was a tenth of what CTAs load or more, a recorded time is no longer that of its configuration.
#pragma once

#include <cstdint>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

inline bool stood_outside(const GemmProblem& problem, int tile_m, int tile_n, int cluster_m, int cluster_n) {
    const auto rows = [](std::int64_t extent, int tile, int cluster) {  // of a CTA's box, in the mean
        const std::int64_t ctas = ceil_div(extent, std::int64_t{tile} * cluster) * cluster;
        return extent <= tile ? 0 : double(ctas * tile - extent) / double(ctas);
    };
    return rows(problem.m, tile_m, cluster_m) + rows(problem.n, tile_n, cluster_n) >= 0.1 * (tile_m + tile_n);
}

}  // namespace rooftile
