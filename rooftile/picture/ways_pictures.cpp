// Of operators written in several ways: a bar a way beside the roof; of an MLP at many sizes: a step's time along each parameter, with why
// it jumps.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// Points of a curve on which every change has its word; of more only jumps have.
constexpr std::size_t most_labelled = 12;

PictureKey key_of(Ink role, const char* text, bool line, bool dashed = false) {
    PictureKey key;
    key.role = role, key.text = text, key.line = line, key.dashed = dashed;
    return key;
}

void add_points(Picture& p, const Json& points, const std::string& parameter, const char* figure, Ink role, bool dashed) {
    PictureMark line{.shape = MarkShape::line, .role = role};
    line.dashed = dashed;
    for (const Json& point : points)
        if (const auto us = number_at(point, figure)) line.points.emplace_back(point.at(parameter).get<double>(), *us);
    if (line.points.size() > 1) p.marks.push_back(line);
}

Picture mlp_picture(const Json& document, const Json& curve, std::size_t index) {
    const std::string parameter = text_at(curve, "parameter"), gpu = text_at(document, "gpu");
    std::string fixed;
    for (const auto& [name, value] : curve.at("fixed").items()) fixed += fmt::format(", {} {}", name, value.dump());
    Picture p{.id = fmt::format("mlp_{}{}", parameter, index ? fmt::format("_{}", index + 1) : ""),
              .title = fmt::format("A step of an MLP over {}{}{}", parameter, fixed, gpu.empty() ? "" : " on " + gpu),
              .x = {},
              .y = {.title = "a step, us", .scale = AxisScale::log}};
    double least = 1e300, most = 0, low = 1e300, high = 0;
    for (const Json& point : curve.at("points")) {
        const double value = point.at(parameter).get<double>();
        least = std::min(least, value), most = std::max(most, value);
        for (const char* figure : {"step_us", "kernel_us", "predicted_us"})
            if (const auto us = number_at(point, figure)) low = std::min(low, *us), high = std::max(high, *us);
    }
    p.x = octave_axis(parameter, least, most);
    p.y.low = 0.7 * low, p.y.high = 1.6 * high;
    add_points(p, curve.at("points"), parameter, "predicted_us", Ink::orange, true);
    add_points(p, curve.at("points"), parameter, "kernel_us", Ink::grey, false);
    add_points(p, curve.at("points"), parameter, "step_us", Ink::blue, false);
    for (const Json& point : curve.at("points"))
        if (const auto us = number_at(point, "step_us"))
            p.marks.push_back({.shape = MarkShape::point,
                               .role = Ink::blue,
                               .points = {{point.at(parameter).get<double>(), *us}},
                               .title = fmt::format("{} {}: {} a step, {} in kernels", parameter, point.at(parameter).dump(),
                                                    time_text(*us), time_or_unknown(number_at(point, "kernel_us")))});
    for (const Json& change : curve.at("changes")) {
        std::string kinds, texts;
        for (const Json& reason : change.at("reasons")) {
            kinds += (kinds.empty() ? "" : ", ") + text_at(reason, "kind");
            texts += (texts.empty() ? "" : "; ") + text_at(reason, "text");
        }
        if (kinds.empty()) kinds = "?", texts = "why is not known";
        const double x = change.at("to").get<double>();
        const bool jump = change.at("jump").get<bool>();
        if (!jump && curve.at("points").size() > most_labelled) continue;
        for (const Json& point : curve.at("points")) {
            const auto us = number_at(point, "step_us");
            if (!us || point.at(parameter).get<double>() != x) continue;
            p.marks.push_back({.shape = MarkShape::text,
                               .role = Ink::ink,
                               .points = {{x, 1.25 * *us}},
                               .label = kinds + (jump ? "!" : ""),
                               .title = fmt::format("from {}: {}", change.at("from").dump(), texts)});
        }
    }
    p.keys = {key_of(Ink::blue, "measured", true), key_of(Ink::grey, "in kernels", true), key_of(Ink::orange, "predicted", true, true)};
    p.caption = "Words say what changed since the point before: the library's kernel, waves of CTAs, the host's pace, L2. With a sign (!) the "
                "time grew by 15 % more or less than the work.";
    return p;
}

}  // namespace

std::vector<Picture> ways_pictures(const Json& document) {
    const auto possible = number_at(document.at("prediction"), "possible_us");
    const std::string gpu = text_at(document, "gpu");
    Picture p{.id = "ways",
              .title = fmt::format("{} {}, {}{}", text_at(document, "operator"), text_at(document, "shape"), text_at(document, "type"),
                                   gpu.empty() ? "" : " on " + gpu),
              .x = {.title = "times the roof", .scale = AxisScale::log, .low = 0.5, .high = 2},
              .y = {.title = "", .scale = AxisScale::names}};
    if (!possible) return {};
    for (const Json& way : document.at("ways")) {
        const auto time = number_at(way, "time_us"), kernels = number_at(way, "kernel_us");
        if (!time) continue;
        const double y = double(p.y.names.size()), whole = *time / *possible;
        p.y.names.push_back(text_at(way, "name"));
        p.x.high = std::max(p.x.high, 3 * whole);
        const std::string title = fmt::format("{}: {}, {} in kernels, {:.0f} launched", text_at(way, "name"), time_text(*time),
                                              time_or_unknown(kernels), number_at(way, "launches").value_or(0));
        p.marks.push_back({.shape = MarkShape::box,
                           .role = text_at(way, "id") == "derived" ? Ink::green : Ink::blue,
                           .points = {{p.x.low, y + 0.2}, {whole, y + 0.8}},
                           .title = title});
        p.marks.push_back({.shape = MarkShape::text, .role = Ink::ink, .points = {{1.5 * whole, y + 0.85}}, .label = time_text(*time)});
    }
    if (p.y.names.empty()) return {};
    const double rows = double(p.y.names.size());
    p.marks.push_back(
        {.shape = MarkShape::line, .role = Ink::ink, .points = {{1, 0}, {1, rows}}, .title = "possible: " + time_text(*possible)});
    p.keys = {key_of(Ink::blue, "others", false), key_of(Ink::green, "ours", false), key_of(Ink::ink, "the roof", true)};
    p.height = 30 + 30 * rows;
    p.caption =
        fmt::format("A call on the device, from its first kernel to its last, over what the datasheet allows ({}).", time_text(*possible));
    return {p};
}

std::vector<Picture> mlp_pictures(const Json& document) {
    std::vector<Picture> out;
    std::map<std::string, std::size_t> of_parameter;
    for (const Json& curve : document.at("curves")) {
        std::size_t timed = 0;
        for (const Json& point : curve.at("points")) timed += number_at(point, "step_us").has_value();
        const std::size_t index = of_parameter[text_at(curve, "parameter")]++;
        if (timed > 1) out.push_back(mlp_picture(document, curve, index));
    }
    return out;
}

}  // namespace rooftile
