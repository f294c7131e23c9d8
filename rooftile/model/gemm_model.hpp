// The physics of a tiled GEMM: what one k-step costs at every level, what crosses each level, and the time
// that follows. Pure functions over plain numbers; NaN stands for an unknown one and spreads only into what
// needs it.
#pragma once

#include <cstdint>

#include "kernels/types.hpp"
#include "rooftile/model/gemm_hardware.hpp"
#include "rooftile/problem/gemm.hpp"

namespace rooftile {

/// What a GEMM kernel family makes of a tile, as far as the model must know.
struct GemmTile {
    int tile_m, tile_n, tile_k;
    int cluster_m = 1, cluster_n = 1;
    int split_k = 1;  ///< CTAs of a cluster that sum parts of K of the same tile
    int ctas_per_sm = 1;
    int warp_m, warp_n;        ///< block of C whose A and B are read from shared memory once a k-step
    bool epilogue_overlapped;  ///< the next tile's products run while this one is stored
    /// How a tile of C leaves: each warp sends `store_boxes` boxes, `store_depth` of them in flight. 0 boxes:
    /// as fast as the port takes it.
    int store_boxes = 0, store_depth = 1;
};

/// The cluster tiles that C is cut into; those at the edges may stand partly outside.
struct TileGrid {
    std::int64_t rows, columns;
};
inline TileGrid cluster_grid(const GemmProblem& p, int tile_m, int tile_n, int cluster_m, int cluster_n) {
    return {ceil_div(p.m, std::int64_t{tile_m} * cluster_m), ceil_div(p.n, std::int64_t{tile_n} * cluster_n)};
}
inline TileGrid cluster_grid(const GemmProblem& problem, const GemmTile& t) {
    return cluster_grid(problem, t.tile_m, t.tile_n, t.cluster_m, t.cluster_n);
}

/// Cycles of one SM for one k-step of one tile, by resource.
struct StepCycles {
    double tensor, shared, l2;
};
StepCycles step_cycles(const GemmHardware& hw, const GemmTile& tile, int element_bytes);

/// k-steps that one CTA takes for one tile, the longest part of K.
std::int64_t k_steps(const GemmTile& tile, const GemmProblem& problem);

/// Cycles from the last product of a tile to its sum over the parts of K: every CTA writes its fp32 sums to
/// shared memory, the cluster meets, every CTA reads its share of them from all parts [M22, M39]. 0 where K
/// is not split.
double exchange_cycles(const GemmHardware& hw, const GemmTile& tile);

/// What the tiles of the whole problem ask for: A once for each column of tiles, B once for each row, C
/// written.
double asked_bytes(const GemmTile& tile, const GemmProblem& problem);
/// What leaves L2: the same, less what multicast shares.
double l2_bytes(const GemmTile& tile, const GemmProblem& problem);

/// The DRAM traffic of one tiling in any order. What does not depend on the order is worked out once.
class WalkTraffic {
  public:
    WalkTraffic(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem);
    /// Bytes read from DRAM after reuse in L2, and C written. `group` counts rows of (cluster) tiles.
    double dram(Order order, int group) const;

  private:
    double a_, b_, c_;       // B: each operand once
    double rows_, columns_;  // tiles of C
    double slots_;           // CTAs that run at once
    double l2_;
    int cluster_m_, cluster_n_;
};

struct Waves {
    std::int64_t tiles = 0;  ///< of C, whole clusters
    double slots = 0;        ///< CTAs the GPU runs at once
    double waves = 0;        ///< ceil(tiles * split_k / slots)
    double efficiency = 0;   ///< tiles * split_k / (waves * slots)
};
Waves waves(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem);

/// Cycles from a tile's last sum to the last of its stores, every warp storing box after box.
double store_cycles(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem);

/// The least bytes any schedule must move between DRAM and the chip [M33]:
/// max(MK + KN + MN, 2 MNK / sqrt(S) - 2 S) elements, S all on-chip storage in elements.
double dram_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& problem);

}  // namespace rooftile
