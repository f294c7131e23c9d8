// Of a simulated L2: C's tiles in their order, coloured by what was found there; DRAM bytes by order; hits over time.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// Four corners that every kind of colour vision tells apart, by lightness too.
Rgb hit_color(double a, double b) {
    constexpr Rgb both{70, 130, 190}, only_a{250, 215, 120}, only_b{240, 150, 70}, none{165, 15, 35};
    const auto mix = [](int x, int y, double share) { return x + share * (y - x); };
    const auto part = [&](int Rgb::*c) {
        return int(std::lround(mix(int(std::lround(mix(none.*c, only_b.*c, b))), int(std::lround(mix(only_a.*c, both.*c, b))), a)));
    };
    return {part(&Rgb::red), part(&Rgb::green), part(&Rgb::blue)};
}

std::string bytes_text(const Json& row, const char* key) { return scaled_text(row.at(key).get<double>(), "B"); }

/// C from above: N to the right, M down.
std::optional<Picture> schedule(const Json& document) {
    if (!document.contains("tiles")) return std::nullopt;
    const Json &tiles = document.at("tiles"), &config = document.at("config"), &grid = document.at("tile_schedule");
    const auto planned =
        std::find_if(document.at("rows").begin(), document.at("rows").end(), [](const Json& row) { return row.at("planned") == true; });
    if (planned == document.at("rows").end()) return std::nullopt;
    // Of a convolution tiles are of places and filters.
    const bool of_image = config.contains("tile_pixels");
    const auto tile_m = config.at(of_image ? "tile_pixels" : "tile_m").get<std::int64_t>(), tile_n = config.at(of_image ? "tile_filters" : "tile_n").get<std::int64_t>();
    const auto count_of = [&](const char* key) {
        std::int64_t last = -1;
        for (const Json& at : tiles.at(key)) last = std::max(last, at.get<std::int64_t>());
        return last + 1;
    };
    const std::int64_t rows = count_of("row"), columns = count_of("column");
    const std::string order =
        fmt::format("{}{}", text_at(config, "order"), config.at("group") == 1 ? "" : fmt::format(" {}", config.at("group").get<int>()));
    Picture p{.id = "tile_schedule",
              .title = fmt::format("{}: tiles of {} x {} in order {}", subject_of(document, document), tile_m, tile_n, order),
              .x = {.title = of_image ? "columns of tiles, along filters" : "columns of tiles, along N", .low = 0, .high = double(columns)},
              .y = {.title = of_image ? "rows of tiles, along places, downwards" : "rows of tiles, along M, downwards", .scale = AxisScale::names}};
    // Few rows have a number each, of many every so many.
    const std::int64_t every = std::max<std::int64_t>(1, (rows + 15) / 16);
    for (std::int64_t row = 0; row < rows; ++row) p.y.names.push_back(row % every == 0 ? std::to_string(row) : "");
    const std::int64_t clusters = grid.at("clusters_in_flight").get<std::int64_t>() * config.at("cluster_m").get<std::int64_t>()
                                  * config.at("cluster_n").get<std::int64_t>();
    PictureMark path{.shape = MarkShape::line, .role = Ink::ink, .points = {}, .title = "the order of the tiles, from their first"};
    const std::size_t count = tiles.at("row").size();
    for (std::size_t i = 0; i < count; ++i) {
        const auto row = tiles.at("row")[i].get<std::int64_t>(), column = tiles.at("column")[i].get<std::int64_t>(),
                   round = tiles.at("round")[i].get<std::int64_t>();
        const double a = tiles.at("a_hit_share")[i].get<double>(), b = tiles.at("b_hit_share")[i].get<double>();
        p.marks.push_back({.shape = MarkShape::box,
                           .color = hit_color(a, b),
                           .points = {{double(column), double(row)}, {double(column + 1), double(row + 1)}},
                           .label = round == 0 ? "" : std::to_string(round),
                           .title = fmt::format("row {}, column {}, round {}: {} of A, {} of B hit", row, column, round, percent_text(a),
                                                percent_text(b))});
        // All of a schedule is a hatch: its first round says how it goes.
        if (round == 0) path.points.emplace_back(double(column) + 0.5, double(row) + 0.5);
    }
    if (path.points.size() > 1) p.marks.push_back(path);
    p.height = std::clamp(440.0 * double(rows * tile_m) / double(columns * tile_n), 90.0, 440.0);
    for (const auto& [a, b, meaning] : {std::tuple{1.0, 1.0, "A and B in L2"},
                                        {1.0, 0.0, "A in L2, B from DRAM"},
                                        {0.0, 1.0, "B in L2, A from DRAM"},
                                        {0.0, 0.0, "both from DRAM"}})
        p.keys.push_back({.color = hit_color(a, b), .text = meaning});
    const Json& row = *planned;
    p.caption = fmt::format(
        "{} CTAs at once, {} rounds; a number is a tile's round, and the line the order of round 0. DRAM {}: A {}, B {}, C {}; A and B "
        "both in L2 at {} of the steps.",
        clusters, grid.at("rounds").get<std::int64_t>(), bytes_text(row, "dram_bytes"), bytes_text(row, "dram_a_bytes"),
        bytes_text(row, "dram_b_bytes"), bytes_text(row, "dram_c_bytes"), percent_text(row.at("both_hit_share").get<double>()));
    return p;
}

/// Bytes from DRAM by order of tiles, A, B and C.
std::optional<Picture> orders(const Json& document) {
    if (document.at("rows").size() < 2) return std::nullopt;
    Picture p{.id = "orders",
              .title = subject_of(document, document) + ": DRAM traffic by order of tiles",
              .x = {.title = "MB to and from DRAM"},
              .y = {.title = "", .scale = AxisScale::names}};
    constexpr double mega = 1e6;
    struct Part {
        const char *key, *name;
        Ink role;
    };
    static constexpr Part parts[] = {
        {"dram_a_bytes", "A read", Ink::blue}, {"dram_b_bytes", "B read", Ink::green}, {"dram_c_bytes", "C written", Ink::ochre}};
    for (const Json& row : document.at("rows")) {
        const double at = double(p.y.names.size());
        const bool planned = row.at("planned").get<bool>();
        p.y.names.push_back(fmt::format("{}{}{}", text_at(row, "order"),
                                        row.at("group") == 1 ? "" : fmt::format(" {}", row.at("group").get<int>()),
                                        planned ? ", planned" : ""));
        double from = 0;
        for (const Part& part : parts) {
            const double to = from + row.at(part.key).get<double>() / mega;
            p.marks.push_back({.shape = MarkShape::box,
                               .role = part.role,
                               .points = {{from, at + 0.1}, {to, at + 0.9}},
                               .label = {},
                               .title = fmt::format("{}: {}", part.name, bytes_text(row, part.key))});
            from = to;
        }
        p.marks.back().label = "";
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::grey,
                           .points = {{from, at + 0.1}, {from + row.at("dram_operand_bytes").get<double>() / mega, at + 0.9}},
                           .label = bytes_text(row, "dram_bytes"),
                           .title = "read by the epilogue: " + bytes_text(row, "dram_operand_bytes"),
                           .beside = true});
        p.x.high = std::max(p.x.high, (from + row.at("dram_operand_bytes").get<double>() / mega) * 1.25);
    }
    if (const auto bound = number_at(document.at("bounds"), "dram_lower_bound_bytes")) {
        p.marks.push_back({.shape = MarkShape::line,
                           .role = Ink::ink,
                           .points = {{*bound / mega, 0}, {*bound / mega, double(p.y.names.size())}},
                           .title = "no order moves less than " + scaled_text(*bound, "B"),
                           .dashed = true});
        p.keys.push_back({.role = Ink::ink, .color = {}, .text = "the least of any order", .dashed = true, .line = true});
    }
    for (const Part& part : parts) p.keys.push_back({.role = part.role, .color = {}, .text = part.name});
    p.height = 20.0 * double(p.y.names.size());
    p.caption = "The plan's tile in every order, through a simulated L2.";
    return p;
}

/// Of a convolution: bytes from DRAM over sizes of L2, and the least at each.
std::optional<Picture> sizes(const Json& document) {
    if (!document.contains("l2_sizes") || document.at("l2_sizes").size() < 2) return std::nullopt;
    constexpr double mega = 1e6;
    Picture p{.id = "l2_sizes",
              .title = subject_of(document, document) + ": DRAM traffic by the size of L2",
              .x = {.title = "MB to and from DRAM"},
              .y = {.title = "", .scale = AxisScale::names}};
    const double compulsory = number_at(document, "compulsory_bytes").value_or(0) / mega;
    for (const Json& row : document.at("l2_sizes")) {
        const double at = double(p.y.names.size()), dram = row.at("dram_bytes").get<double>() / mega;
        p.y.names.push_back(bytes_text(row, "l2_size_bytes"));
        const double once = std::min(dram, compulsory);
        p.marks.push_back({.shape = MarkShape::box, .role = Ink::blue, .points = {{0, at + 0.1}, {once, at + 0.9}}, .label = {}, .title = "every tensor once"});
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::orange,
                           .points = {{once, at + 0.1}, {dram, at + 0.9}},
                           .label = bytes_text(row, "dram_bytes"),
                           .title = "again: " + bytes_text(row, "dram_bytes") + " in all",
                           .beside = true});
        if (const auto bound = number_at(row, "dram_lower_bound_bytes"))
            p.marks.push_back({.shape = MarkShape::line,
                               .role = Ink::ink,
                               .points = {{*bound / mega, at}, {*bound / mega, at + 1}},
                               .title = "no schedule moves less than " + bytes_text(row, "dram_lower_bound_bytes"),
                               .dashed = true});
        p.x.high = std::max(p.x.high, dram * 1.25);
    }
    p.keys = {{.role = Ink::blue, .color = {}, .text = "every tensor once"}, {.role = Ink::orange, .color = {}, .text = "read again"},
              {.role = Ink::ink, .color = {}, .text = "the least of any schedule", .dashed = true, .line = true}};
    p.height = 20.0 * double(p.y.names.size());
    p.caption = "The plan's tile in its order, through a simulated L2 of each size.";
    return p;
}

}  // namespace

std::vector<Picture> simulation_pictures(const Json& document) {
    std::vector<Picture> out;
    for (auto& picture : {schedule(document), orders(document), sizes(document)})
        if (picture) out.push_back(*picture);
    return out;
}

std::vector<Picture> layered_simulation_pictures(const Json& document) {
    const Json& simulation = document.contains("simulation") ? document.at("simulation") : document;
    const Json& samples = simulation.at("samples");
    if (samples.empty()) return {};
    static constexpr Ink roles[] = {Ink::blue, Ink::green, Ink::orange, Ink::purple, Ink::ink};
    const double all = samples.back().at("steps").get<double>();
    Picture p{.id = "hits",
              .title = subject_of(document, document) + ": what L2 has, over time",
              .x = {.title = "steps of tiles", .low = 0, .high = all},
              .y = {.title = "hits of what is asked of L2, %", .low = -4, .high = 104}};
    p.y.ticks = {{0, "0"}, {25, "25"}, {50, "50"}, {75, "75"}, {100, "100"}};
    double begin = 0, hits = 0;
    for (const Json& sample : samples) {
        const double end = sample.at("steps").get<double>(), both = sample.at("both_hits").get<double>(),
                     share = end > begin ? (both - hits) / (end - begin) : 0;
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::faint,
                           .points = {{begin, 0}, {end, 100 * share}},
                           .label = {},
                           .title = fmt::format("to step {:.0f}: {} of the steps find both operands", end, percent_text(share)),
                           .soft = true});
        begin = end, hits = both;
    }
    p.keys.push_back({.role = Ink::faint, .color = {}, .text = "steps whose operands both hit", .soft = true});
    std::size_t i = 0;
    for (const auto& [tensor, total] : simulation.at("tensors").items()) {
        const double asked_of_all = total.at("asked_bytes").get<double>(), read_of_all = total.at("read_bytes").get<double>();
        // Lines at 0 and at 100 % would lie on each other: each tensor has its own small distance.
        const double apart = 0.7 * (double(i) - 1.5);
        PictureMark line{
            .shape = MarkShape::line, .role = roles[i++ % std::size(roles)], .points = {}, .title = tensor, .dashed = i % 2 == 0};
        if (asked_of_all <= 0) continue;
        double from = 0, asked = 0, read = 0;
        for (const Json& sample : samples) {
            const Json& of = sample.at("tensors").at(tensor);
            const double end = sample.at("steps").get<double>(), more = of.at("asked_bytes").get<double>() - asked,
                         missed = of.at("read_bytes").get<double>() - read;
            if (more > 0)
                line.points.emplace_back(from, 100 * (1 - missed / more) + apart),
                    line.points.emplace_back(end, 100 * (1 - missed / more) + apart);
            from = end, asked += more, read += missed;
        }
        p.keys.push_back({.role = line.role,
                          .color = {},
                          .text = fmt::format("{}: {}", tensor, percent_text(1 - read_of_all / asked_of_all)),
                          .dashed = line.dashed,
                          .line = true});
        if (!line.points.empty()) p.marks.push_back(std::move(line));
    }
    p.caption = "Per cent of all that a tensor asks is in the key; lines are drawn a little apart where they would cover each other.";
    return {p};
}

}  // namespace rooftile
