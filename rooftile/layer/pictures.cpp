// Of a model's layer: its kernels' times, or over a grid of steps what share attention, the cache and the gaps have.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/layer/report.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr double row_height = 24, most_rows = 60;

/// "Meta-Llama-3-8B on h200-sxm".
std::string layer_subject(const Json& document) {
    std::string config = text_at(document.at("model"), "config");
    config = config.substr(config.rfind('/') + 1);
    if (config.ends_with(".json")) config.resize(config.size() - 5);
    return fmt::format("{} on {}", config, text_at(document.at("machine"), "id"));
}

PictureMark bar(double row, double from, double to, Ink role, std::string title) {
    return {.shape = MarkShape::box, .role = role, .points = {{from, row + 0.15}, {to, row + 0.85}}, .title = std::move(title)};
}

/// A bar a kernel; what no kernel could be faster than lies in it.
Picture kernel_bars(const Json& document) {
    const Json& cell = document.at("cells").at(0);
    Picture p{.id = "layer_kernels",
              .title = "A layer's kernels, " + layer_subject(document),
              .x = {.title = "us"},
              .y = {.title = "", .scale = AxisScale::names}};
    p.x.high = 0;
    for (const Json& k : cell.at("kernels")) {
        const double row = double(p.y.names.size());
        const std::string name = text_at(k, "name");
        const auto time = number_at(k, "time_us"), least = number_at(k, "least_us");
        p.y.names.push_back(name);
        p.x.high = std::max({p.x.high, time.value_or(0), least.value_or(0)});
        const std::string text = fmt::format("{}: {}, {}", name, time ? time_text(*time) : text_at(k, "provenance"), text_at(k, "plan"));
        if (time) p.marks.push_back(bar(row, 0, *time, text_at(k, "provenance") == "planned" ? Ink::blue : Ink::grey, text));
        if (least && *least > 0)
            p.marks.push_back(bar(row, 0, *least, Ink::green, fmt::format("{}: at least {}", name, time_text(*least))));
    }
    p.x.high *= 1.05;
    p.height = row_height * double(p.y.names.size());
    p.keys = {{.role = Ink::blue, .color = {}, .text = "planned"},
              {.role = Ink::grey, .color = {}, .text = "modelled by bytes"},
              {.role = Ink::green, .color = {}, .text = "least possible"}};
    p.caption =
        fmt::format("Batch {}, context {}. Gaps between launches are left out.", cell.at("batch").dump(), cell.at("context").dump());
    return p;
}

/// What a cell differs in from others.
std::string cell_name(const Json& document, const Json& cell) {
    std::string out;
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    for (const auto& [key, value] : cell.at("set").items()) add(fmt::format("{} {}", key, value.get<std::string>()));
    for (const char* key : {"batch", "context", "prefill"})
        if (std::ranges::any_of(document.at("cells"), [&](const Json& other) { return other.at(key) != cell.at(key); }))
            add(fmt::format("{} {}", key, cell.at(key).dump()));
    return out;
}

/// A bar a cell: attention, other kernels, gaps.
Picture cell_bars(const Json& document) {
    Picture p{.id = "layer_steps",
              .title = "A layer's time, " + layer_subject(document),
              .x = {.title = "us"},
              .y = {.title = "", .scale = AxisScale::names}};
    p.x.high = 0;
    for (const Json& cell : document.at("cells")) {
        const auto kernels = number_at(cell, "kernels_us"), share = number_at(cell, "attention_share"), time = number_at(cell, "time_us"),
                   least = number_at(cell, "least_us");
        if (!kernels || !share || double(p.y.names.size()) >= most_rows) continue;
        const double row = double(p.y.names.size()), attention = *kernels * *share;
        const std::string name = cell_name(document, cell);
        p.y.names.push_back(name);
        p.marks.push_back(bar(row, 0, attention, Ink::blue, fmt::format("{}: attention {}", name, time_text(attention))));
        p.marks.push_back(
            bar(row, attention, *kernels, Ink::orange, fmt::format("{}: other kernels {}", name, time_text(*kernels - attention))));
        if (time) p.marks.push_back(bar(row, *kernels, *time, Ink::grey, fmt::format("{}: gaps {}", name, time_text(*time - *kernels))));
        if (least)
            p.marks.push_back({.shape = MarkShape::point,
                               .role = Ink::ink,
                               .points = {{*least, row + 0.5}},
                               .title = fmt::format("{}: at least {}", name, time_text(*least))});
        p.x.high = std::max({p.x.high, time.value_or(*kernels), least.value_or(0)});
    }
    p.x.high *= 1.05;
    p.height = row_height * double(p.y.names.size());
    p.keys = {{.role = Ink::blue, .color = {}, .text = "attention"},
              {.role = Ink::orange, .color = {}, .text = "other kernels"},
              {.role = Ink::grey, .color = {}, .text = "gaps in a graph"}};
    p.caption = "Dots: the least possible.";
    return p;
}

struct LayerFigure {
    const char *id, *title;
    bool share;
    std::optional<double> (*of)(const Json&);
};
constexpr LayerFigure layer_figures[] = {
    {"layer_time", "A layer's time in a graph", false, [](const Json& cell) { return number_at(cell, "time_us"); }},
    {"layer_attention", "Attention's share of the kernels' time", true,
     [](const Json& cell) { return number_at(cell, "attention_share"); }},
    {"layer_cache", "The cache's share of the bytes", true, [](const Json& cell) { return number_at(cell, "cache_share"); }},
    {"layer_gaps", "The gaps' share of the time", true, gaps_share},
};

/// One figure of cells that differ in batch and context.
Picture heat_map(const Json& document, const std::vector<const Json*>& cells, const LayerFigure& figure, const std::string& place,
                 const std::string& suffix) {
    Picture p{.id = figure.id + suffix,
              .title = fmt::format("{}, {}{}", figure.title, layer_subject(document), place),
              .x = {.title = "context, tokens", .scale = AxisScale::names},
              .y = {.title = "batch, downwards", .scale = AxisScale::names}};
    const auto place_of = [](PictureAxis& axis, const Json& value) {
        const auto found = std::ranges::find(axis.names, value.dump());
        if (found != axis.names.end()) return double(found - axis.names.begin());
        axis.names.push_back(value.dump());
        return double(axis.names.size() - 1);
    };
    double least = INFINITY, most = 0;
    for (const Json* cell : cells)
        if (const auto value = figure.of(*cell)) least = std::min(least, *value), most = std::max(most, *value);
    for (const Json* cell : cells) {
        const double x = place_of(p.x, cell->at("context")), y = place_of(p.y, cell->at("batch"));
        const auto value = figure.of(*cell);
        PictureMark mark{.shape = MarkShape::box, .role = Ink::faint, .points = {{x + 0.02, y + 0.03}, {x + 0.98, y + 0.97}}};
        mark.label = !value ? "?" : figure.share ? percent_text(*value) : time_text(*value);
        mark.title = fmt::format("batch {}, context {}: {}", cell->at("batch").dump(), cell->at("context").dump(), mark.label);
        if (value) mark.color = shade_color(figure.share ? *value : most > least ? std::log(*value / least) / std::log(most / least) : 0);
        p.marks.push_back(std::move(mark));
    }
    p.height = row_height * double(p.y.names.size());
    return p;
}

}  // namespace

std::vector<Picture> layer_pictures(const Json& document) {
    const Json& cells = document.at("cells");
    if (cells.empty()) return {};
    if (cells.size() == 1) return {kernel_bars(document)};
    std::vector<std::vector<const Json*>> grids;
    for (const Json& cell : cells) {
        const bool alike = !grids.empty() && grids.back().front()->at("set") == cell.at("set")
                           && grids.back().front()->at("prefill") == cell.at("prefill");
        if (!alike) grids.emplace_back();
        grids.back().push_back(&cell);
    }
    const auto differ = [](const std::vector<const Json*>& grid, const char* key) {
        return std::ranges::any_of(grid, [&](const Json* cell) { return cell->at(key) != grid.front()->at(key); });
    };
    std::vector<Picture> out;
    for (const auto& grid : grids) {
        if (!differ(grid, "batch") || !differ(grid, "context")) continue;
        std::string place;
        for (const auto& [key, value] : grid.front()->at("set").items()) place += fmt::format(", {} {}", key, value.get<std::string>());
        if (grids.size() > 1) place += fmt::format(", prefill {}", grid.front()->at("prefill").dump());
        const std::string suffix = out.empty() ? "" : fmt::format("_{}", out.size() / std::size(layer_figures) + 1);
        for (const LayerFigure& figure : layer_figures) out.push_back(heat_map(document, grid, figure, place, suffix));
    }
    if (!out.empty()) return out;
    if (Picture bars = cell_bars(document); !bars.marks.empty()) out.push_back(std::move(bars));
    return out;
}

}  // namespace rooftile
