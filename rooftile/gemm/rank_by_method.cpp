#include <algorithm>
#include <bit>
#include <cmath>

#include "rooftile/gemm/search.hpp"

namespace rooftile {

double flops_a_loaded_byte(const GemmProblem& p, const GemmConfig& t) {
    const TileGrid tiles = cluster_grid(p, t.tile_m, t.tile_n, 1, 1);
    const double a = double(p.m) * double(tiles.columns) * bytes_of(p.a_type), b = double(p.n) * rows_a_matrix(p, tiles) * bytes_of(p.b_type);
    const int parts = t.k_parts();
    const double sums = parts == 1 ? 0 : 2.0 * parts * double(p.m) * double(p.n) * bytes_of(Type::fp32) / double(p.k);  // written, and read
    return 2.0 * double(p.m) * double(p.n) / (a + b + sums);
}

std::array<double, 5> rank_by_method(const GemmHardware& hw, const GemmProblem& problem, const Kept& kept) {
    const GemmCandidate& t = kept.candidate;
    const double intensity = flops_a_loaded_byte(problem, t), critical = hw.peak_flops / hw.dram_bandwidth;
    // Without a rate all tiles run at the same: what one level alone takes says nothing of them.
    const double step = std::isnan(t.step.tensor) ? double(t.tile_m) * t.tile_n * t.tile_k : t.pace();
    constexpr double most_threads = 4096;  // more than a CTA has
    const int line = 128 / std::max(bytes_of(problem.a_type), bytes_of(problem.b_type));  // elements of a row that are loaded together
    std::array<double, 5> rank{0, 0, -intensity, -(double(t.ctas_per_sm) * most_threads + t.threads), -double(std::min(t.tile_k, line))};
    if (!std::isnan(kept.waves.waves * critical)) {
        // Of K as it is: the last k-step's rest says nothing for short ones.
        const double a_tile = double(problem.k) / t.k_parts() * step / t.tile_k;
        rank[0] = kept.waves.waves * t.ctas_per_sm * a_tile * (1 + critical / intensity);
        return rank;
    }
    // Sides between the doubled ones fill waves better: where nobody says what a wave is they earn nothing.
    const auto doubled = [](int side) { return std::has_single_bit(unsigned(side)); };
    if (intensity < critical) rank[0] = 2;
    else rank[1] = t.stages_against_latency(hw.dram_latency);
    if (!doubled(t.tile_m) || !doubled(t.tile_n)) rank[0] += 1;
    // Half of such a tile lies beyond C.
    if (t.tile_m >= 2 * problem.m || t.tile_n >= 2 * problem.n) rank[0] += 4;
    return rank;
}

}  // namespace rooftile
