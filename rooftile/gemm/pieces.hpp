// Pieces of K that clusters sum each by itself: what of a launch's workspace they take.
#pragma once

#include <cstdint>

#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// Where in the workspace, which begins with the counters; all in bytes. Nothing where K is in one piece and turns are fixed.
struct PiecesWorkspace {
    std::int64_t counters = 0;  ///< up to the sums: one a CTA of a piece and its warpgroup, or that of tiles, 0 before the launch and after it
    std::int64_t sums = 0;      ///< fp32, of all tiles and pieces
    std::int64_t bytes() const { return counters + sums; }
};
/// Of a C of m x n; a multiple of 128 B.
PiecesWorkspace pieces_workspace(const GemmConfig& config, std::int64_t m, std::int64_t n, std::int64_t products);

}  // namespace rooftile
