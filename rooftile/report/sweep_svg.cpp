// Pictures of a sweep: heat maps over two logarithmic axes, or curves over one.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "rooftile/report/number.hpp"
#include "rooftile/report/svg.hpp"
#include "rooftile/report/sweep_report.hpp"

namespace rooftile {
namespace {

constexpr double left = 96, head = 64, cell = 34, foot = 56, gap = 48, legend = 28;
// Told apart by lightness too: red is below, blue above.
constexpr svg::Color low{178, 24, 43}, even{247, 247, 247}, high{33, 102, 172}, off{230, 97, 1};

/// Nothing lies below 1.
int octave(double value) { return int(std::floor(std::log2(std::max(1.0, value)))); }

struct Span {
    int first = 0, last = 0;
    int count() const { return last - first + 1; }
};

Span octaves(const SweepReport& r, const ProblemTraits::Axis ProblemTraits::*axis) {
    Span span{octave((r.points.front().traits.*axis).value), octave((r.points.front().traits.*axis).value)};
    for (const SweepPoint& p : r.points) {
        span.first = std::min(span.first, octave((p.traits.*axis).value));
        span.last = std::max(span.last, octave((p.traits.*axis).value));
    }
    return span;
}

/// "4096", "1 Mi".
std::string power_text(int exponent) {
    static constexpr const char* units[] = {"", " Ki", " Mi", " Gi", " Ti"};
    if (exponent < 14) return std::to_string(1 << exponent);
    return std::to_string(1 << exponent % 10) + units[std::min(exponent / 10, 4)];
}

/// One figure of the points, its mean and its colour in a cell.
struct Map {
    std::string title, legend;
    std::function<std::optional<double>(const SweepPoint&)> value;
    std::function<double(const std::vector<double>&)> mean;
    std::function<svg::Color(double)> color;
    std::function<std::string(double)> text;
};

double arithmetic_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / double(values.size());
}

double geometric_mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += std::log(v);
    return std::exp(sum / double(values.size()));
}

std::vector<Map> maps_of(const SweepReport& r) {
    constexpr double full_ratio = 0.4, full_error = 0.4;  // this far from none the colour is full
    return {{fmt::format("Ratio to {}", r.operation->baseline()),
             "red: ours is slower; blue: faster; full at a factor 1.5",
             [](const SweepPoint& p) { return p.ratio; }, geometric_mean,
             [](double ratio) {
                 const double by = std::clamp(std::log(ratio) / full_ratio, -1.0, 1.0);
                 return svg::mixed(even, by < 0 ? low : high, std::fabs(by));
             },
             [](double ratio) { return fmt::format("{:.2f}", ratio); }},
            {"Error of the prediction", "|predicted / measured - 1|, full at 40 %",
             [](const SweepPoint& p) { return p.prediction_error(); }, arithmetic_mean,
             [](double error) { return svg::mixed(even, off, std::min(1.0, error / full_error)); },
             [](double error) { return fmt::format("{:.0f} %", 100 * error); }}};
}

std::string axes(const SweepReport& r, Span x, Span y, double at_x) {
    std::string out;
    const double bottom = head + y.count() * cell;
    for (int i = 0; i <= x.count(); i += x.count() > 12 ? 2 : 1)
        out += svg::text(at_x + i * cell, bottom + 16, 10, power_text(x.first + i), "text-anchor=\"middle\"");
    for (int i = 0; i <= y.count(); ++i)
        out += svg::text(at_x - 6, bottom - i * cell + 4, 10, power_text(y.first + i), "text-anchor=\"end\"");
    out += svg::text(at_x + x.count() * cell / 2, bottom + 34, 12, r.points.front().traits.x.name,
                     "text-anchor=\"middle\"");
    return out + svg::text(at_x - 60, head - 10, 12, r.points.front().traits.y.name);
}

std::string heat_map(const SweepReport& r, const Map& map, Span x, Span y, double at_x) {
    std::map<std::pair<int, int>, std::vector<double>> cells;
    for (const SweepPoint& p : r.points)
        if (const auto value = map.value(p))
            cells[{octave(p.traits.x.value) - x.first, octave(p.traits.y.value) - y.first}].push_back(*value);
    std::string out =
        svg::text(at_x, 24, 14, map.title, "font-weight=\"bold\"") + svg::text(at_x, 42, 11, map.legend);
    for (const auto& [place, values] : cells) {
        const double left_edge = at_x + place.first * cell,
                     top = head + (y.count() - 1 - place.second) * cell;
        const double mean = map.mean(values);
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        out +=
            svg::rect(left_edge, top, cell, cell, map.color(mean),
                      fmt::format("{} problem{}: {} ({} to {})", values.size(), values.size() == 1 ? "" : "s",
                                  map.text(mean), map.text(*least), map.text(*most)));
        out += svg::text(left_edge + cell / 2, top + cell / 2 + 4, 10, map.text(mean),
                         "text-anchor=\"middle\" pointer-events=\"none\"");
    }
    return out + axes(r, x, y, at_x);
}

std::string heat_maps(const SweepReport& r) {
    const Span x = octaves(r, &ProblemTraits::x), y = octaves(r, &ProblemTraits::y);
    const double width = std::max(x.count() * cell, 320.0);
    std::string out = svg::begin(2 * (left + width) + gap, head + y.count() * cell + foot + legend);
    double at_x = left;
    for (const Map& map : maps_of(r)) {
        out += heat_map(r, map, x, y, at_x);
        at_x += width + left + gap / 2;
    }
    return out + "</svg>\n";
}

struct Line {
    const char *name, *color, *dashes;
    std::optional<double> (*value)(const SweepPoint&);
};
constexpr Line lines[] = {
    {"measured", "#2166ac", "", [](const SweepPoint& p) { return p.time_us; }},
    {"baseline", "#b2182b", "6 3", [](const SweepPoint& p) { return p.baseline_us; }},
    {"predicted", "#444444", "2 3", [](const SweepPoint& p) { return p.predicted_us; }},
};

std::string curve(const SweepReport& r, const ProblemTraits::Axis ProblemTraits::*axis) {
    constexpr double octave_width = 56, octave_height = 34;
    const Span x = octaves(r, axis);
    std::vector<const SweepPoint*> points;
    for (const SweepPoint& p : r.points) points.push_back(&p);
    std::stable_sort(points.begin(), points.end(), [&](const SweepPoint* a, const SweepPoint* b) {
        return (a->traits.*axis).value < (b->traits.*axis).value;
    });
    double least = INFINITY, most = 0;
    for (const SweepPoint* p : points)
        for (const Line& line : lines)
            if (const auto us = line.value(*p)) least = std::min(least, *us), most = std::max(most, *us);
    if (most <= 0) least = most = 1;
    const int first = int(std::floor(std::log2(least))), last = int(std::ceil(std::log2(most) + 1e-9));
    const double width = std::max(x.count() * octave_width, 360.0);
    const double height = std::max(1, last - first) * octave_height, bottom = head + height;
    const double per_octave = width / x.count();
    const auto at_x = [&](double value) {
        return left + (std::log2(std::max(1.0, value)) - x.first) * per_octave;
    };
    const auto at_y = [&](double us) { return bottom - (std::log2(us) - first) * octave_height; };
    std::string out = svg::begin(left + width + gap, bottom + foot);
    out +=
        svg::text(left, 24, 14,
                  fmt::format("Time of {} over {}", r.operation->name(), (points.front()->traits.*axis).name),
                  "font-weight=\"bold\"");
    for (int i = 0; i <= x.count(); ++i)
        out += svg::text(left + i * per_octave, bottom + 16, 10, power_text(x.first + i),
                         "text-anchor=\"middle\"");
    for (int i = first; i <= std::max(last, first + 1); ++i)
        out += svg::text(left - 6, at_y(std::exp2(i)) + 4, 10, time_text(std::exp2(i)), "text-anchor=\"end\"")
               + fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#ddd\"/>\n", left,
                             at_y(std::exp2(i)), width);
    out += svg::text(left + width / 2, bottom + 34, 12, (points.front()->traits.*axis).name,
                     "text-anchor=\"middle\"");
    double legend_at = left;
    for (const Line& line : lines) {
        std::string path;
        for (const SweepPoint* p : points)
            if (const auto us = line.value(*p))
                path += fmt::format("{:.1f},{:.1f} ", at_x((p->traits.*axis).value), at_y(*us));
        if (path.empty()) continue;
        out += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
            "stroke-dasharray=\"{}\"/>\n",
            path, line.color, line.dashes);
        out += svg::text(legend_at, 44, 12, line.name, fmt::format("style=\"fill:{}\"", line.color));
        legend_at += 90;
    }
    return out + "</svg>\n";
}

/// Whether `value` is the same of all points, but for rounding.
bool is_constant(const SweepReport& r, double (*value)(const ProblemTraits&)) {
    const double first = value(r.points.front().traits);
    return std::all_of(r.points.begin(), r.points.end(),
                       [&](const SweepPoint& p) { return std::fabs(value(p.traits) / first - 1) < 1e-9; });
}

}  // namespace

std::string sweep_svg(const SweepReport& r) {
    if (r.points.empty()) return svg::begin(left, head) + "</svg>\n";
    // One size varies: it moves along one axis, or along both at once.
    if (is_constant(r, [](const ProblemTraits& t) { return t.y.value; })
        || is_constant(r, [](const ProblemTraits& t) { return t.y.value / t.x.value; }))
        return curve(r, &ProblemTraits::x);
    if (is_constant(r, [](const ProblemTraits& t) { return t.x.value; })) return curve(r, &ProblemTraits::y);
    return heat_maps(r);
}

}  // namespace rooftile
