// C seen from above, as SVG: one cell a tile, one colour a mixture of hits, the tile schedule as a line.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/error.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/gemm/simulation_report.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/svg.hpp"

namespace rooftile {
namespace {

constexpr std::size_t max_drawn_tiles = 65536;
constexpr double picture = 960, min_cell = 3, max_cell = 48, margin = 24, head = 84, legend = 40;
constexpr double room_for_text = 22;  // a cell that a number can be read in
constexpr std::size_t titled = 8192;  // tiles whose figures show under the pointer

// Four corners told apart with any kind of colour vision: by lightness too.
constexpr svg::Color both_hit{70, 130, 190}, only_a{250, 215, 120}, only_b{240, 150, 70},
    none_hit{165, 15, 35};

svg::Color blend(double a, double b) {
    return mixed(mixed(none_hit, only_b, b), mixed(only_a, both_hit, b), a);
}

/// Every colour's meaning, in a row.
std::string legend_at(double x, double y) {
    struct Corner {
        double a, b;
        const char* meaning;
    };
    static constexpr Corner corners[] = {{1, 1, "A and B in L2"},
                                         {1, 0, "A in L2, B from DRAM"},
                                         {0, 1, "B in L2, A from DRAM"},
                                         {0, 0, "both from DRAM"}};
    std::string out;
    for (const Corner& corner : corners) {
        out += svg::rect(x, y, 14, 14, blend(corner.a, corner.b));
        out += svg::text(x + 20, y + 12, 12, corner.meaning);
        x += 175;
    }
    return out;
}

/// The centres of the cluster tiles in the order of the tile schedule; a new line for every `per_line`, so that no
/// single attribute grows without end.
std::string path_of(const TileSchedule& tile_schedule, double cell_x, double cell_y) {
    std::string points, out;
    const auto tiles = scheduled_tiles(tile_schedule);
    const auto center = [](std::int64_t first, int count, std::int64_t all) {
        return (double(first) + double(std::min(all, first + count))) / 2;
    };
    for (const TileCoordinate& tile : tiles)
        points += fmt::format("{:.1f},{:.1f} ",
                              margin
                                  + cell_x
                                        * center(std::int64_t{tile.column} * tile_schedule.cluster_n,
                                                 tile_schedule.cluster_n, tile_schedule.tile_columns()),
                              head
                                  + cell_y
                                        * center(std::int64_t{tile.row} * tile_schedule.cluster_m,
                                                 tile_schedule.cluster_m, tile_schedule.tile_rows()));
    const double width = std::clamp(std::min(cell_x, cell_y) / 12, 0.6, 2.0);
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#000\" stroke-opacity=\"0.45\" "
        "stroke-width=\"{:.1f}\" "
        "stroke-linejoin=\"round\"/>\n",
        points, width);
    const std::size_t comma = points.find(','), space = points.find(' ');
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{:.1f}\" fill=\"#000\"/>\n", points.substr(0, comma),
                       points.substr(comma + 1, space - comma - 1), 2.5 * width);
    return out;
}

std::string cell_text(const TileHits& tile, double x, double y, double cell_x, double cell_y, bool title) {
    return svg::rect(x, y, cell_x, cell_y, blend(tile.a, tile.b),
                     title ? fmt::format("tile row {}, column {}, round {}: {} of A, {} of B hit", tile.row,
                                         tile.column, tile.round, percent_text(tile.a), percent_text(tile.b))
                           : "");
}

}  // namespace

std::string tile_schedule_svg(const GemmProblem& p, const TileSchedule& tile_schedule,
                              const GemmTraffic& traffic, const std::vector<TileHits>& tiles) {
    if (tiles.size() > max_drawn_tiles)
        throw RequestError(
            fmt::format("{} tiles are too many to draw; at most {} can be seen", tiles.size(), max_drawn_tiles));
    // TextTable have the tile's proportions.
    const double rows = double(tile_schedule.tile_rows()), columns = double(tile_schedule.tile_columns());
    const double scale =
        std::min(picture / (columns * tile_schedule.tile_n), picture / (rows * tile_schedule.tile_m));
    const auto cell = [&](int extent) { return std::clamp(extent * scale, min_cell, max_cell * 2); };
    const double cell_x = cell(tile_schedule.tile_n), cell_y = cell(tile_schedule.tile_m);
    const double width = std::max(columns * cell_x + 2 * margin, 760.0);
    const double height = head + rows * cell_y + legend + margin;
    std::string out = svg::begin(width, height);
    out += svg::text(margin, 28, 17,
                     fmt::format("C of {} x {} x {} (M x N x K) in tiles of {} x {}, order {}", p.m, p.n, p.k,
                                 tile_schedule.tile_m, tile_schedule.tile_n,
                                 order_text(tile_schedule.order, tile_schedule.group)),
                     "font-weight=\"bold\"");
    out += svg::text(
        margin, 50, 13,
        fmt::format("DRAM {}: A read {}, B read {}, C written {}. A and B both in L2 at {} of the steps",
                    scaled_text(double(traffic.dram_bytes()), "B"),
                    scaled_text(double(traffic.dram_a_bytes), "B"),
                    scaled_text(double(traffic.dram_b_bytes), "B"),
                    scaled_text(double(traffic.dram_c_bytes), "B"), percent_text(traffic.both_hit_share())));
    out += svg::text(
        margin, 70, 13,
        fmt::format(
            "{} clusters of {} x {} CTAs at once: {} rounds. The line is the tile schedule, from the dot on",
            tile_schedule.clusters, tile_schedule.cluster_m, tile_schedule.cluster_n,
            tile_schedule.rounds()));
    for (const TileHits& tile : tiles)
        out += cell_text(tile, margin + double(tile.column) * cell_x, head + double(tile.row) * cell_y,
                         cell_x, cell_y, tiles.size() <= titled);
    out += path_of(tile_schedule, cell_x, cell_y);
    if (std::min(cell_x, cell_y) >= room_for_text)
        for (const TileHits& tile : tiles)
            out += svg::text(margin + double(tile.column) * cell_x + 3, head + double(tile.row) * cell_y + 12,
                             10, std::to_string(tile.round), "fill-opacity=\"0.8\"");
    out += legend_at(margin, head + rows * cell_y + 16);
    return out + "</svg>\n";
}

}  // namespace rooftile
