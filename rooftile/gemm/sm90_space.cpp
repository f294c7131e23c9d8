#include "rooftile/gemm/sm90_space.hpp"

namespace rooftile::sm90 {

int max_stages_of(const GemmTile& t, const GemmRequest& request, double shared_limit) {
    const double fits =
        whole(shared_limit / (double(t.tile_m + t.tile_n) * t.tile_k * Sm90GemmConfig::element_bytes));
    return static_cast<int>(
        min_known(std::max(max_stages, request.stages.value_or(0)), max_known(fits, min_stages)));
}

std::vector<TileFigures> tiles_of(const GemmHardware& hw, const GemmProblem& problem,
                                  const GemmRequest& request) {
    std::vector<TileFigures> tiles;
    tiles.reserve(searched_tile_ms.size() * searched_tile_ns.size());
    const GemmTimeFloor floor(hw, problem);
    const int tile_k = request.tile_k.value_or(swizzle_span);
    const double shared_limit = rooftile::shared_limit(hw, 1);
    for (int tile_m : choices(request.tile_m, searched_tile_ms))
        for (int tile_n : choices(request.tile_n, searched_tile_ns)) {
            TileFigures& figures = tiles.emplace_back(hw, problem, tile_m, tile_n, tile_k);
            figures.floor = max_known(
                floor.seconds(figures.tile, figures.grid, figures.step,
                              {figures.k_blocks, streamed_cycles(hw, figures.tile, problem, figures.grid), 0,
                               unknown_number},
                              max_stages_of(figures.tile, request, shared_limit)),
                0);
        }
    // Where a number is unknown no tile promises more than another.
    std::sort(tiles.begin(), tiles.end(), [](const auto& x, const auto& y) { return x.floor < y.floor; });
    return tiles;
}

}  // namespace rooftile::sm90
