#include <algorithm>
#include <cmath>

#include "rooftile/gemm/search.hpp"

namespace rooftile {

double flops_a_loaded_byte(const GemmProblem& p, const GemmTile& t) {
    const TileGrid tiles = cluster_grid(p, t.tile_m, t.tile_n, 1, 1);
    const double a = double(p.m) * double(tiles.columns) * bytes_of(p.a_type), b = double(p.n) * rows_a_matrix(p, tiles) * bytes_of(p.b_type);
    return 2.0 * double(p.m) * double(p.n) / (a + b);
}

std::array<double, 5> rank_by_method(const GemmHardware& hw, const GemmProblem& problem, const Kept& kept) {
    const GemmTile& t = kept.candidate.tile;
    const Footprint& f = kept.footprint;
    const double intensity = flops_a_loaded_byte(problem, t), critical = hw.peak_flops / hw.dram_bandwidth;
    const double step = max_known(max_known(f.step.tensor, f.step.shared), max_known(f.step.l2, f.step.port));
    constexpr double most_threads = 4096;  // more than a CTA has
    const int line = 128 / std::max(bytes_of(problem.a_type), bytes_of(problem.b_type));  // elements of a row that are loaded together
    std::array<double, 5> rank{0, 0, -intensity, -(double(t.ctas_per_sm) * most_threads + f.threads), -double(std::min(t.tile_k, line))};
    if (!std::isnan(kept.waves.waves)) {
        // Without a rate all tiles run at the same. Of K as it is: the last k-step's rest says nothing for short ones.
        const double a_tile = double(problem.k) / t.k_parts() * known_or(step / t.tile_k, double(t.tile_m) * t.tile_n);
        rank[0] = kept.waves.waves * t.ctas_per_sm * a_tile * (1 + known_or(critical, 0) / intensity);
    } else if (intensity < critical) {
        rank[0] = 1;
    } else {
        rank[1] = f.stages_against_latency(hw.dram_latency, t.ctas_per_sm);
    }
    return rank;
}

}  // namespace rooftile
