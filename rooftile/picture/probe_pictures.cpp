// Of a probe of device memory: the rate of each mix of reads and writes, and of each pattern of blocks, a bar each, next to the driver's
// peak.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

Picture rates_picture(const Json& document, const std::string& series, const std::string& id, const std::string& title,
                      const std::optional<double>& peak) {
    const std::string gpu = text_at(document.at("context"), "gpu");
    Picture p{.id = id,
              .title = title + (gpu.empty() ? "" : " on " + gpu),
              .x = {.title = "GB/s", .high = peak.value_or(0)},
              .y = {.title = "", .scale = AxisScale::names}};
    for (const Json& point : document.at("points")) {
        const auto rate = number_at(point, "gbps");
        if (text_at(point, "series") != series || !rate) continue;
        const double y = double(p.y.names.size());
        const std::string label = text_at(point, "label");
        p.y.names.push_back(label);
        p.x.high = std::max(p.x.high, *rate);
        const double spread = number_at(point, "gbps_spread").value_or(0);
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::blue,
                           .points = {{0, y + 0.2}, {*rate, y + 0.8}},
                           .label = fmt::format("{:.0f}", *rate),
                           .title = fmt::format("{}: {:.0f} GB/s, within {:.0f}", label, *rate, spread)});
    }
    if (p.y.names.empty()) return p;
    const double rows = double(p.y.names.size());
    if (peak) {
        p.marks.push_back({.shape = MarkShape::line,
                           .role = Ink::ink,
                           .points = {{*peak, 0}, {*peak, rows}},
                           .title = fmt::format("peak: {:.0f} GB/s", *peak)});
        PictureKey key;
        key.role = Ink::ink, key.text = "the driver's peak", key.line = true;
        p.keys.push_back(std::move(key));
    }
    p.x.high *= 1.05;
    p.height = 30 + 22 * rows;
    return p;
}

}  // namespace

std::vector<Picture> probe_pictures(const Json& document) {
    std::optional<double> peak;
    for (const Json& value : document.at("values"))
        if (text_at(value, "name") == "dram.peak") peak = number_at(value, "value");
    std::vector<Picture> out;
    Picture mix = rates_picture(document, "dram.mix", "dram_mix", "Device memory by reads to writes", peak),
            blocks = rates_picture(document, "dram.blocks", "dram_blocks", "Device memory by blocks and strides", peak);
    mix.caption = "By CTA: each CTA reads only or writes only.";
    blocks.caption = "Blocks in flight at a time are a stride from each other; every byte is read once.";
    for (Picture* picture : {&mix, &blocks})
        if (!picture->marks.empty()) out.push_back(std::move(*picture));
    return out;
}

}  // namespace rooftile
