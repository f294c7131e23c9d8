// Of many problems: ratio and error as maps over two sizes, or curves over one; predictions beside measured times; a ledger's regret.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

struct RunPoint {
    std::string name, label;
    double x = 0, y = 0;
    std::optional<double> time, baseline, predicted, ratio;
    std::optional<double> error() const { return time && predicted ? std::optional(*predicted / *time - 1) : std::nullopt; }
};

std::vector<RunPoint> run_points(const Json& document) {
    std::vector<RunPoint> out;
    const std::string x = document.at("axes").at(0), y = document.at("axes").at(1);
    for (const Json& point : document.at("points"))
        out.push_back({text_at(point, "name"), text_at(point, "label"), point.at(x).get<double>(), point.at(y).get<double>(),
                       number_at(point, "time_us"), number_at(point, "baseline_us"), number_at(point, "predicted_us"),
                       number_at(point, "ratio")});
    return out;
}

/// "OPERATION on NVIDIA H100 80GB HBM3, 2026-11-26, seed 7".
std::string run_text(const Json& document) {
    const Json& context = document.at("context");
    std::string out = fmt::format("{} on {}", text_at(document, "operation"),
                                  context.contains("gpu") ? text_at(context, "gpu") : text_at(document.at("machine"), "id"));
    if (context.contains("date")) out += ", " + text_at(context, "date").substr(0, 10);
    if (const auto seed = number_at(context, "seed")) out += fmt::format(", seed {:.0f}", *seed);
    return out;
}

int octave_of(double value) { return int(std::floor(std::log2(std::max(1.0, value)))); }

/// Octaves that a problem lies in, one name each; "..." where others lie between.
struct OctaveNames {
    std::map<int, double> place;
    PictureAxis axis;
    OctaveNames(std::string title, const std::vector<RunPoint>& points, double RunPoint::*size, bool descending) {
        axis = {.title = std::move(title), .scale = AxisScale::names};
        std::vector<int> octaves;
        for (const RunPoint& p : points) octaves.push_back(octave_of(p.*size));
        std::sort(octaves.begin(), octaves.end());
        octaves.erase(std::unique(octaves.begin(), octaves.end()), octaves.end());
        if (descending) std::reverse(octaves.begin(), octaves.end());
        for (std::size_t i = 0; i < octaves.size(); ++i) {
            if (i > 0 && std::abs(octaves[i] - octaves[i - 1]) > 1) axis.names.push_back("...");
            place[octaves[i]] = double(axis.names.size());
            axis.names.push_back(power_text(octaves[i]));
        }
    }
};

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / double(values.size());
}

/// A figure of the points as its mean in cells of an octave each way.
struct HeatMap {
    std::string id, title;
    std::optional<double> (*value)(const RunPoint&);
    bool balance;  ///< about 1, geometric; else a share from 0 on
    double full;   ///< from where on the colour is full: a factor, a share
    std::vector<PictureKey> keys;
};

std::optional<Picture> heat_map(const Json& document, const std::vector<RunPoint>& points, const HeatMap& map) {
    std::vector<RunPoint> counted;
    for (const RunPoint& p : points)
        if (map.value(p)) counted.push_back(p);
    if (counted.empty()) return std::nullopt;
    OctaveNames x(document.at("axes").at(0).get<std::string>() + ", from this on", counted, &RunPoint::x, false);
    OctaveNames y(document.at("axes").at(1).get<std::string>() + ", from this on", counted, &RunPoint::y, true);
    std::map<std::pair<double, double>, std::vector<double>> cells;
    for (const RunPoint& p : counted) cells[{x.place.at(octave_of(p.x)), y.place.at(octave_of(p.y))}].push_back(*map.value(p));
    Picture p{.id = map.id,
              .title = fmt::format("{}: {}", run_text(document), map.title),
              .x = x.axis,
              .y = y.axis,
              .keys = map.keys};
    for (const auto& [place, values] : cells) {
        std::vector<double> logarithms;
        for (const double v : values) logarithms.push_back(std::log(v));
        const double mean = map.balance ? std::exp(mean_of(logarithms)) : mean_of(values);
        const double share = map.balance ? std::log(mean) / std::log(map.full) : mean / map.full;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        p.marks.push_back({.shape = MarkShape::box,
                           .color = map.balance ? balance_color(share) : balance_color(-share),
                           .points = {{place.first + 0.02, place.second + 0.02}, {place.first + 0.98, place.second + 0.98}},
                           .label = fmt::format("{:.0f}", 100 * mean),
                           .title = fmt::format("{} problem{}: {:.1f} % ({:.1f} to {:.1f} %)", values.size(), values.size() == 1 ? "" : "s",
                                                100 * mean, 100 * *least, 100 * *most)});
    }
    p.height = std::max(60.0, 24.0 * double(y.axis.names.size()));
    p.caption = fmt::format("The mean of {} problems in cells of an octave each way; colours are full at {}.", counted.size(),
                            map.balance ? fmt::format("a factor {:g}", map.full) : fmt::format("{:.0f} %", 100 * map.full));
    return p;
}

std::vector<Picture> heat_maps(const Json& document, const std::vector<RunPoint>& points) {
    const std::string baseline = text_at(document, "baseline");
    const HeatMap maps[] = {{"ratio_map",
                             fmt::format("time of {} over ours, %", baseline),
                             [](const RunPoint& p) { return p.ratio; },
                             true,
                             1.5,
                             {{.color = balance_color(-1), .text = "ours is slower"},
                              {.color = balance_color(0), .text = "alike"},
                              {.color = balance_color(1), .text = "ours is faster"}}},
                            {"error_map",
                             "error of the prediction, %",
                             [](const RunPoint& p) { return p.error() ? std::optional(std::fabs(*p.error())) : std::nullopt; },
                             false,
                             0.4,
                             {{.color = balance_color(0), .text = "none"}, {.color = balance_color(-1), .text = "40 % or more"}}}};
    std::vector<Picture> out;
    for (const HeatMap& map : maps)
        if (auto picture = heat_map(document, points, map)) out.push_back(std::move(*picture));
    return out;
}

struct RunLine {
    const char* name;
    Ink role;
    bool dashed;
    std::optional<double> RunPoint::*value;
};

/// Times over the size that varies, and what they are of each other: on the first lines lie on each other.
std::vector<Picture> curves(const Json& document, std::vector<RunPoint> points, double RunPoint::*size, std::string axis) {
    std::stable_sort(points.begin(), points.end(), [&](const RunPoint& a, const RunPoint& b) { return a.*size < b.*size; });
    const std::string baseline = text_at(document, "baseline");
    const RunLine lines[] = {{"measured", Ink::blue, false, &RunPoint::time},
                             {"", Ink::orange, true, &RunPoint::baseline},
                             {"predicted", Ink::green, true, &RunPoint::predicted}};
    Picture time{.id = "time_curve",
                 .title = fmt::format("{}: time over {}", run_text(document), axis),
                 .x = octave_axis(axis, points.front().*size, points.back().*size),
                 .y = {.title = "time, us", .scale = AxisScale::log, .low = INFINITY, .high = 0}};
    Picture ratio = time;
    ratio.id = "ratio_curve", ratio.title = fmt::format("{}: beside the measured time over {}", run_text(document), axis),
    ratio.y.title = "measured time is 1";
    ratio.height = 150;
    for (const RunLine& line : lines) {
        const std::string name = *line.name ? line.name : baseline;
        PictureMark of_time{.shape = MarkShape::line, .role = line.role, .points = {}, .title = name, .dashed = line.dashed},
            of_ratio = of_time;
        PictureMark dots{.shape = MarkShape::point, .role = line.role, .points = {}};
        for (const RunPoint& p : points) {
            if (!(p.*line.value)) continue;
            const double us = *(p.*line.value);
            of_time.points.emplace_back(p.*size, us);
            time.y.low = std::min(time.y.low, us * 0.8), time.y.high = std::max(time.y.high, us * 1.25);
            if (!p.time) continue;
            of_ratio.points.emplace_back(p.*size, us / *p.time);
            ratio.y.low = std::min(ratio.y.low, us / *p.time * 0.95), ratio.y.high = std::max(ratio.y.high, us / *p.time * 1.05);
        }
        if (of_time.points.empty()) continue;
        dots.points = of_time.points;
        time.marks.push_back(of_time), ratio.marks.push_back(of_ratio);
        if (!line.dashed) time.marks.push_back(dots);
        time.keys.push_back({.role = line.role, .color = {}, .text = name, .dashed = line.dashed, .line = true});
    }
    ratio.keys = time.keys;
    time.caption =
        fmt::format("{} problems; the law: {}.", points.size(), document.at("law").is_null() ? "as given" : text_at(document, "law"));
    ratio.caption = "Above 1 what is drawn takes longer than what was measured of ours.";
    std::vector<Picture> out;
    if (!time.marks.empty()) out.push_back(std::move(time));
    if (std::any_of(ratio.marks.begin(), ratio.marks.end(), [](const PictureMark& m) { return m.points.size() > 1; }))
        out.push_back(std::move(ratio));
    return out;
}

/// Predictions in shares of what was measured, with bands of 5 and 10 %.
std::optional<Picture> accuracy(const std::string& title, const std::vector<RunPoint>& points, Ink role) {
    PictureMark dots{.shape = MarkShape::point, .role = role, .points = {}};
    Picture p{.id = "accuracy",
              .title = title,
              .x = {.title = "measured time, us", .scale = AxisScale::log, .low = INFINITY, .high = 0},
              .y = {.title = "predicted over measured time", .scale = AxisScale::log, .low = 0.8, .high = 1.25}};
    int within = 0, count = 0;
    std::vector<PictureMark> each;
    for (const RunPoint& point : points) {
        const auto error = point.error();
        if (!error) continue;
        const double share = 1 + *error;
        p.x.low = std::min(p.x.low, *point.time * 0.8), p.x.high = std::max(p.x.high, *point.time * 1.25);
        p.y.low = std::min(p.y.low, share * 0.95), p.y.high = std::max(p.y.high, share * 1.05);
        ++count, within += std::fabs(*error) <= 0.1;
        each.push_back({.shape = MarkShape::point,
                        .role = role,
                        .points = {{*point.time, share}},
                        .label = {},
                        .title = fmt::format("{}: measured {}, predicted {} ({:+.1f} %); {}", point.name, time_text(*point.time),
                                             time_text(*point.predicted), 100 * *error, point.label)});
    }
    if (each.empty()) return std::nullopt;
    for (const double band : {0.10, 0.05})
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::blue,
                           .points = {{p.x.low, 1 - band}, {p.x.high, 1 + band}},
                           .title = fmt::format("within {:.0f} %", 100 * band),
                           .soft = true});
    p.marks.push_back({.shape = MarkShape::line, .role = Ink::faint, .points = {{p.x.low, 1}, {p.x.high, 1}}, .title = "as predicted"});
    p.marks.insert(p.marks.end(), each.begin(), each.end());
    p.y.ticks = {{0.9, "0.9"}, {1, "1"}, {1.1, "1.1"}};
    for (const double tick : {0.25, 0.5, 0.7, 0.8, 1.25, 1.5, 2.0, 3.0, 5.0})
        if (tick > p.y.low && tick < p.y.high) p.y.ticks.emplace_back(tick, fmt::format("{:g}", tick));
    p.keys = {{.role = role, .color = {}, .text = "a problem"},
              {.role = Ink::blue, .color = {}, .text = "bands: within 5 % and 10 %", .soft = true}};
    p.caption =
        fmt::format("{} of {} predictions are within 10 % of the measured time; above 1 the prediction was too long.", within, count);
    return p;
}

/// Predicted times in cells of an octave each way, the geometric mean of each.
Picture time_map(const Json& document, const std::string& title, const std::vector<RunPoint>& points) {
    OctaveNames x(document.at("axes").at(0).get<std::string>() + ", from this on", points, &RunPoint::x, false);
    OctaveNames y(document.at("axes").at(1).get<std::string>() + ", from this on", points, &RunPoint::y, true);
    std::map<std::pair<double, double>, std::vector<double>> cells;
    double least = INFINITY, most = 0;
    for (const RunPoint& p : points) {
        cells[{x.place.at(octave_of(p.x)), y.place.at(octave_of(p.y))}].push_back(std::log(*p.predicted));
        least = std::min(least, *p.predicted), most = std::max(most, *p.predicted);
    }
    Picture out{.id = "time_map",
                .title = title + ": predicted time, us",
                .x = x.axis,
                .y = y.axis};
    out.keys = {{.color = shade_color(0), .text = time_text(least)}, {.color = shade_color(1), .text = time_text(most)}};
    for (const auto& [place, values] : cells) {
        const double us = std::exp(mean_of(values));
        out.marks.push_back({.shape = MarkShape::box,
                             .color = shade_color(most > least ? std::log(us / least) / std::log(most / least) : 0),
                             .points = {{place.first + 0.02, place.second + 0.02}, {place.first + 0.98, place.second + 0.98}},
                             .label = number_text(us, 3),
                             .title = fmt::format("{} problem{}: {}", values.size(), values.size() == 1 ? "" : "s", time_text(us))});
    }
    out.height = std::max(60.0, 24.0 * double(y.axis.names.size()));
    out.caption = fmt::format("The mean of {} problems in cells of an octave each way.", points.size());
    return out;
}

bool is_constant(const std::vector<RunPoint>& points, double (*value)(const RunPoint&)) {
    return std::all_of(points.begin(), points.end(),
                       [&](const RunPoint& p) { return std::fabs(value(p) / value(points.front()) - 1) < 1e-9; });
}

}  // namespace

std::vector<Picture> sweep_pictures(const Json& document) {
    std::vector<Picture> out;
    if (!document.contains("points")) return out;  // of a version that did not list them
    const std::vector<RunPoint> points = run_points(document);
    if (points.empty()) return out;
    const std::string x = document.at("axes").at(0), y = document.at("axes").at(1);
    // One size varies: it moves along one axis, or along both at once.
    if (is_constant(points, [](const RunPoint& p) { return p.y; }) || is_constant(points, [](const RunPoint& p) { return p.y / p.x; }))
        out = curves(document, points, &RunPoint::x, x);
    else if (is_constant(points, [](const RunPoint& p) { return p.x; })) out = curves(document, points, &RunPoint::y, y);
    else out = heat_maps(document, points);
    if (auto picture = accuracy(run_text(document) + ": predictions", points, Ink::ink)) out.push_back(std::move(*picture));
    return out;
}

std::vector<Picture> planned_pictures(const Json& planned) {
    Json document = planned;
    std::vector<RunPoint> points;
    for (const Json& row : planned.at("rows")) {
        const auto us = row.contains("prediction") ? number_at(row.at("prediction"), "time_us") : std::nullopt;
        const Operation* operation = find_operation(text_at(row.at("problem"), "op"));
        if (!us || !operation || row.value("rank", 1) != 1) continue;
        const ProblemTraits traits = operation->traits(operation->problem(operation->given_of_record(record_of(row.at("problem")))));
        document["axes"] = {traits.x.name, traits.y.name}, document["operation"] = operation->name();
        points.push_back({subject_of(planned, row), {}, traits.x.value, traits.y.value, {}, {}, us, {}});
    }
    if (points.empty()) return {};
    document["baseline"] = "", document["law"] = planned.value("law", Json(nullptr));
    const std::string x = document.at("axes").at(0), y = document.at("axes").at(1);
    if (is_constant(points, [](const RunPoint& p) { return p.y; }) || is_constant(points, [](const RunPoint& p) { return p.y / p.x; }))
        return curves(document, points, &RunPoint::x, x);
    if (is_constant(points, [](const RunPoint& p) { return p.x; })) return curves(document, points, &RunPoint::y, y);
    return {time_map(document, run_text(document), points)};
}

std::vector<Picture> validation_pictures(const Json& document) {
    std::vector<Picture> out;
    for (const Json& operation : document.at("operations")) {
        std::vector<RunPoint> points;
        for (const Json& row : operation.at("rows")) {
            RunPoint p;
            p.name = subject_of(document, row), p.label = text_at(row, "plan");
            p.time = number_at(row, "plan_us"), p.predicted = number_at(row, "plan_predicted_us");
            points.push_back(std::move(p));
        }
        const std::string gpu = operation.contains("ledger") ? text_at(operation.at("ledger"), "gpu") : "";
        if (auto picture =
                accuracy(fmt::format("{} on {}: predictions of the plans that a ledger timed", text_at(operation, "operation"), gpu),
                         points, Ink::ink))
            out.push_back(std::move(*picture));
    }
    return out;
}

}  // namespace rooftile
