#include "rooftile/gemm/groups_derivation.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/formulas.hpp"

namespace rooftile {
namespace {

/// One row each but for the last, which has the rest.
GemmProblem with_worst_counts(const GemmProblem& p) {
    std::vector<std::int64_t> rows(std::size_t(p.groups->count()), 0);
    std::int64_t rest = p.m;
    for (std::size_t i = 0; i + 1 < rows.size() && rest > 1; ++i) rows[i] = 1, --rest;
    rows.back() += rest;
    GemmProblem out = p;
    out.groups = SharedGroups(std::move(rows));
    return out;
}

}  // namespace

double seconds_of_worst_counts(const GemmContext& context, const Kept& kept) {
    const GemmProblem worst = with_worst_counts(context.problem);
    const GemmCandidate& tile = kept.candidate;
    const auto [order, group] = tile.order_choice();
    return gemm_time_under_power(context.hw, tile, worst, step_cycles(context.hw, tile, worst, neighbours(worst, tile, order, group)),
                                 waves(context.hw, tile, worst), ScheduleTraffic(context.hw, tile, worst).dram(order, group), kept.candidate.stages)
        .seconds;
}

void explain_groups(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmProblem& p = context.problem;
    if (!p.groups) return;
    const GemmGroups& groups = *p.groups;
    const GemmCandidate& tile = kept.candidate;
    const std::int64_t height = std::int64_t{tile.tile_m} * tile.cluster_m, tiles = groups.tiles(height);
    const double rows = double(tiles * height);
    steps.add(gemm_formula::rows_of_group_tiles,
              {given("groups", double(groups.count()), "groups", "problem"), given("with rows", double(groups.with_rows()), "groups", "problem"),
               given("rows", double(p.m), "rows", "problem"), given("the longest has", double(groups.longest()), "rows", "problem"),
               given("tile_m", tile.tile_m, "rows", "this plan"), given("cluster_m", tile.cluster_m, "", "this plan")},
              double(tiles),
              fmt::format("{:.3g} % of what their tiles multiply is after a group's end; the kernel reads where groups begin and end from device "
                          "memory, one load of L2 before its first tile", 100 * (1 - double(p.m) / rows)));
    const double seconds = seconds_of_worst_counts(context, kept);
    steps.add(gemm_formula::worst_counts_time,
              {given("rows of tiles, at most", double(groups.max_tiles(height)), "rows of tiles", "problem"),
               given("time", kept.time.seconds * 1e6, "us", "this plan")},
              seconds * 1e6, unless_unknown(seconds / kept.time.seconds, "{:.3g} x this plan's time, with as many rows in all", seconds / kept.time.seconds));
}

}  // namespace rooftile
