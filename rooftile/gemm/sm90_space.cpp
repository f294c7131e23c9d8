#include "rooftile/gemm/sm90_space.hpp"

#include <array>
#include <iterator>

#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/rules.hpp"

namespace rooftile::sm90 {
namespace {

/// With A and B swapped; the other side is any of those that stand on the instruction's m otherwise.
constexpr auto swapped_tile_ms = [] {
    std::array<int, 32> sizes{};
    for (int i = 0; i < 32; ++i) sizes[std::size_t(i)] = 8 * (i + 1);
    return sizes;
}();

/// gemm_rules::tight_swapped_tiles. Each of two to eight parts of K stores whole steps of 8; clusters and an m-major A
/// ask for the larger steps.
bool tight(int tile_m, const GemmProblem& p) {
    constexpr int steps[] = {8, 16, 24, 32, 40, 48, 56, 64};
    const auto rows = [&p](int height) { return cluster_grid(p, height, 1, 1, 1).rows; };
    return std::any_of(std::begin(steps), std::end(steps), [&](int step) {
        return tile_m % step == 0 && (tile_m == step || rows(tile_m) < rows(tile_m - step));
    });
}

}  // namespace

int max_stages_of(const GemmConfig& t, const GemmRequest& request, double shared_limit) {
    const double fits =
        whole(shared_limit / (double(t.tile_m + t.tile_n) * Sm90GemmConfig::swizzle_bytes));
    return static_cast<int>(
        min_known(std::max(max_stages, request.stages.value_or(0)), max_known(fits, min_stages)));
}

std::vector<TileFigures> tiles_of(const GemmHardware& hw, const GemmProblem& problem,
                                  const GemmRequest& request) {
    std::vector<TileFigures> tiles;
    tiles.reserve(searched_tile_ms.size() * (searched_tile_ns.size() + swapped_tile_ms.size()));
    const GemmTimeFloor floor(hw, problem);
    GemmCandidate of{config_of(request), {request.overlapped_epilogue, request.epilogue_tile_n.value_or(0)}};
    of.tile_k = request.tile_k.value_or(k_span(problem.a_type));
    const double shared_limit = rooftile::shared_limit(hw, 1);
    const auto list = [&](bool swap_ab, std::span<const int> tile_ms, std::span<const int> tile_ns) {
        if (request.swap_ab.value_or(swap_ab) != swap_ab) return;
        of.swap_ab = swap_ab;
        for (int tile_m : choices(request.tile_m, tile_ms))
            for (int tile_n : choices(request.tile_n, tile_ns)) {
                of.tile_m = tile_m, of.tile_n = tile_n;
                TileFigures& figures = tiles.emplace_back(hw, problem, of);
                figures.floor = max_known(floor.seconds(figures.tile, max_stages_of(figures.tile, request, shared_limit)), 0);
                if (swap_ab && !request.exhaustive && !request.tile_m && !tight(tile_m, problem))
                    figures.left_out = &gemm_rules::tight_swapped_tiles;
            }
    };
    list(false, searched_tile_ms, searched_tile_ns);
    list(true, swapped_tile_ms, searched_tile_ms);
    // Where a number is unknown no tile promises more than another.
    std::sort(tiles.begin(), tiles.end(), [](const auto& x, const auto& y) {
        return bool(x.left_out) != bool(y.left_out) ? bool(y.left_out) : x.floor < y.floor;
    });
    return tiles;
}

}  // namespace rooftile::sm90
