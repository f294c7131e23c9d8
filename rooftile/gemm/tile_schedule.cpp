#include "rooftile/gemm/tile_schedule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/tiled/l2_follower.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t max_tiles = 1 << 26;
// Sums of bytes over rounds stay far below 2^63.
constexpr std::int64_t max_operand_bytes = std::int64_t{1} << 50;

}  // namespace

std::optional<TileSchedule> tile_schedule_of(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p,
                                             Order order, int group) {
    const double slots = waves(hw, t, p).slots;
    const double clusters = slots / (double(t.cluster_m) * t.cluster_n * t.k_parts());
    if (std::isnan(clusters) || clusters < 1) return std::nullopt;
    // One GPC's worth of CTAs lags; of a GPU of one GPC none does.
    const double late =
        whole(hw.sms_per_gpc * t.ctas_per_sm / (double(t.cluster_m) * t.cluster_n * t.k_parts()));
    // Of a gathered image a block is of one tap, as L2 is asked for it: channels of the next one are another block.
    const std::int64_t block = p.gathered ? std::min(std::int64_t{t.tile_k}, p.image->channels) : t.tile_k;
    return TileSchedule{.m = p.m,
                        .n = p.n,
                        .k = p.k,
                        .a_bytes = bytes_of(p.a_type),
                        .b_bytes = bytes_of(p.b_type),
                        .c_bytes = int(bytes_of(p.c_type) * std::int64_t(p.results()) * p.result_n() / p.n),
                        .operand_bytes = int(p.epilogue ? p.epilogue->element_bytes() * p.result_n() / p.n : 0),
                        .tile_m = t.tile_m,
                        .tile_n = t.tile_n,
                        .tile_k = int(block),
                        .cluster_m = t.cluster_m,
                        .cluster_n = t.cluster_n,
                        .split_k = t.k_parts(),
                        .clusters = static_cast<std::int64_t>(clusters),
                        .late_clusters = late < clusters ? static_cast<std::int64_t>(late) : 0,
                        .skew = hw.sm_skew,
                        .order = order,
                        .group = group,
                        .image = p.image};
}

void check(const TileSchedule& g) {
    for (std::int64_t size : {g.m, g.n, g.k, g.clusters, std::int64_t{g.tile_m}, std::int64_t{g.tile_n},
                              std::int64_t{g.tile_k}, std::int64_t{g.cluster_m}, std::int64_t{g.cluster_n},
                              std::int64_t{g.split_k}, std::int64_t{g.group}})
        if (size < 1)
            throw RequestError(
                fmt::format("a simulated tile schedule has a size of {}; each must be 1 or more", size));
    if (g.late_clusters < 0 || g.late_clusters >= g.clusters || !(g.skew >= 0 && g.skew <= 1))
        throw RequestError(
            fmt::format("{} of {} clusters lag by {} of a step; not all may lag, by a share from 0 to 1",
                        g.late_clusters, g.clusters, g.skew));
    const auto [rows, columns, products] = g.cluster_tiles();
    if (rows > max_tiles / columns)
        throw RequestError(
            fmt::format("{} x {} cluster tiles are too many to simulate; at most {} are simulated", rows,
                        columns, max_tiles));
    for (std::int64_t extent : {g.m, g.n})
        if (extent > max_operand_bytes / g.k)
            throw RequestError(
                fmt::format("an operand of {} x {} elements is too large to simulate", extent, g.k));
}

std::vector<TileCoordinate> scheduled_tiles(const TileSchedule& g) {
    const auto [rows, columns, products] = g.cluster_tiles();
    return ordered_tiles(int(rows), int(columns), g.order, g.group);
}

std::vector<std::int64_t> k_sequence(const TileSchedule& g) { return k_in_parts(g.k_blocks(), g.split_k); }

GemmTraffic fixed_traffic(const TileSchedule& g) {
    const auto [rows, columns, products] = g.cluster_tiles();
    // Of an image pixels outside are zeros that nobody asks L2 for.
    const double inside = g.image ? g.image->share_inside() : 1;
    const std::int64_t a = g.image ? std::llround(double(g.m) * double(g.k) * double(g.a_bytes) * inside) : g.m * g.k * g.a_bytes, b = g.n * g.k * g.b_bytes, c = g.m * g.n * g.c_bytes;
    GemmTraffic t;
    t.l2_read_bytes = a * columns + b * rows;
    t.sm_bytes = g.m * g.k * g.a_bytes * columns * g.cluster_n + b * rows * g.cluster_m;
    t.l2_write_bytes = t.dram_c_bytes = c;
    t.dram_operand_bytes = g.m * g.n * g.operand_bytes;
    t.steps = g.tile_rows() * g.tile_columns() * g.k_blocks();
    return t;
}

}  // namespace rooftile
