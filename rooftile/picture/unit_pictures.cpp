// Of short kernels: their time over bytes, a curve each, from DRAM and in L2.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

Picture unit_curves(const Json& document, const std::string& place) {
    constexpr Ink inks[] = {Ink::blue, Ink::orange, Ink::ochre, Ink::purple, Ink::green, Ink::ink, Ink::grey};
    const Json& context = document.at("context");
    Picture p{.id = "units_" + place,
              .title = fmt::format("Short kernels, {}, operands {}{}", text_at(document, "type"), place == "dram" ? "from DRAM" : "in L2",
                                   context.contains("gpu") ? " on " + text_at(context, "gpu") : ""),
              .x = {},
              .y = {.title = "us a launch", .scale = AxisScale::log, .low = 1e300, .high = 0}};
    double least = 1e300, most = 0;
    std::size_t curve = 0;
    for (const Json& kernel : document.at("kernels")) {
        const Ink ink = inks[curve++ % std::size(inks)];
        PictureMark measured{.shape = MarkShape::line, .role = ink}, predicted{.shape = MarkShape::line, .role = ink, .dashed = true};
        PictureMark dots{.shape = MarkShape::point, .role = ink};
        for (const Json& point : document.at("points")) {
            const auto us = number_at(point, "time_us");
            if (!us || text_at(point, "place") != place || point.at("kernel") != kernel.at("id")) continue;
            const double kib = point.at("x_bytes").get<double>() / 1024;
            least = std::min(least, kib), most = std::max(most, kib);
            p.y.low = std::min(p.y.low, *us), p.y.high = std::max(p.y.high, *us);
            measured.points.emplace_back(kib, *us);
            dots.points.emplace_back(kib, *us);
            if (const auto model = number_at(point, "predicted_us")) predicted.points.emplace_back(kib, *model);
        }
        if (measured.points.empty()) continue;
        dots.title = text_at(kernel, "name");
        for (PictureMark* mark : {&predicted, &measured})
            if (mark->points.size() > 1) p.marks.push_back(std::move(*mark));
        p.marks.push_back(std::move(dots));
        PictureKey key;
        key.role = ink, key.text = text_at(kernel, "name"), key.line = true;
        p.keys.push_back(std::move(key));
    }
    if (p.marks.empty()) return p;
    p.x = octave_axis("x, KiB", least, most);
    p.y.low *= 0.7, p.y.high *= 1.6;
    p.height = 300;
    p.caption = "Dashed: predicted from the machine's numbers and the instructions of the machine code.";
    return p;
}

}  // namespace

std::vector<Picture> unit_pictures(const Json& document) {
    std::vector<Picture> out;
    for (const char* place : {"dram", "l2"})
        if (Picture p = unit_curves(document, place); !p.marks.empty()) out.push_back(std::move(p));
    return out;
}

}  // namespace rooftile
