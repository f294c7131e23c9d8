// Of a plan, predicted or measured: the waterfall from its roof, the map of tiles, the roofline, one CTA's pipeline.
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

using Points = std::vector<std::pair<double, double>>;

std::string in_words(std::string key) {
    std::replace(key.begin(), key.end(), '_', ' ');
    return key;
}

std::string plural(std::int64_t count, std::string_view noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

/// A row of the waterfall, `inset` from its neighbours.
constexpr double inset = 0.12;

std::string inputs_text(const Json& step) {
    std::string out;
    for (const Json& input : step.value("inputs", Json::array())) {
        const auto value = number_at(input, "value");
        out += fmt::format("{}{} = {}", out.empty() ? ": " : ", ", text_at(input, "name"),
                           value ? input_text(*value, text_at(input, "unit")) : "unknown");
    }
    return out;
}

/// From the roof to the prediction and, of what was measured, to the measured time.
std::optional<Picture> waterfall(const Json& document, const Json& row) {
    if (!row.contains("attainability") || row.at("attainability").empty()) return std::nullopt;
    Picture p{.id = "waterfall",
              .title = subject_of(document, row) + ": from the roof to the prediction",
              .x = {.title = "time, us"},
              .y = {.title = "", .scale = AxisScale::names}};
    double most = 0, before = 0;
    std::string note;
    const auto bar = [&](std::string name, Ink role, double from, double to, std::string label, std::string title) {
        const double at = double(p.y.names.size());
        p.y.names.push_back(std::move(name));
        p.marks.push_back({.shape = MarkShape::box,
                           .role = role,
                           .points = {{from, at + inset}, {to, at + 1 - inset}},
                           .label = std::move(label),
                           .title = std::move(title),
                           .beside = true});
        most = std::max({most, from, to});
    };
    const Json& steps = row.at("attainability");
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Json& step = steps[i];
        const double now = step.at("time_ns").get<double>() / 1e3, cost = step.at("cost_ns").get<double>() / 1e3;
        const std::string name = in_words(text_at(step, "step"));
        const bool measured = name == "measured";
        if (measured) bar("prediction", Ink::blue, 0, before, time_text(before), "what the model predicts");
        const std::string change = fmt::format("{}{}{}", cost < 0 ? "-" : "+", time_text(std::fabs(cost)),
                                               before > 0 ? fmt::format(" ({:+.1f} %)", 100 * cost / before) : "");
        if (i == 0) bar(name, Ink::blue, 0, now, time_text(now), name + inputs_text(step));
        else if (cost != 0) bar(measured ? "unexplained" : name, Ink::orange, before, now, change, name + inputs_text(step));
        before = now;
        if (measured) {
            bar("measured", Ink::green, 0, now, time_text(now), "what was measured");
            p.title = subject_of(document, row) + ": from the roof to the measured time";
        } else if (i + 1 == steps.size()) bar("prediction", Ink::blue, 0, now, time_text(now), "what the model predicts");
    }
    p.x.high = most * 1.02;
    p.height = 22.0 * double(p.y.names.size());
    p.keys = {{.role = Ink::blue, .color = {}, .text = "predicted time"}, {.role = Ink::orange, .color = {}, .text = "what a limit adds"}};
    if (p.y.names.back() == "measured") p.keys.push_back({.role = Ink::green, .color = {}, .text = "measured time"});
    p.caption = "Each bar adds what the hardware stops giving for free; the costs add up to the last time.";
    return p;
}

Ink wall_role(const std::string& wall) {
    static const std::map<std::string, Ink> roles = {
        {"registers", Ink::orange}, {"shared", Ink::purple}, {"instruction", Ink::grey}, {"threads", Ink::ochre}, {"latency", Ink::green}};
    const auto found = roles.find(wall);
    return found == roles.end() ? Ink::faint : found->second;
}

constexpr double map_full = 1.5;  ///< times the fastest, from where on colours are alike

/// Two values of a configuration against each other.
std::optional<Picture> tile_map(const Json& document) {
    if (!document.contains("map") || document.at("map").at("cells").empty()) return std::nullopt;
    const Json& map = document.at("map");
    const std::string x = text_at(map, "x"), y = text_at(map, "y");
    const Json& config = document.at("plans").at(0).at("config");
    Picture p{.id = std::string(tile_map_id),
              .title = {},
              .x = {.title = x + ", elements", .scale = AxisScale::names},
              .y = {.title = y + ", elements, downwards", .scale = AxisScale::names}};
    std::map<std::int64_t, double> columns, rows;
    double best = INFINITY;
    for (const Json& cell : map.at("cells")) {
        columns[cell.at(x).get<std::int64_t>()], rows[cell.at(y).get<std::int64_t>()];
        if (const auto us = number_at(cell, "time_us")) best = std::min(best, *us);
    }
    const auto number = [](std::map<std::int64_t, double>& values, PictureAxis& axis) {
        for (auto& [value, place] : values) place = double(axis.names.size()), axis.names.push_back(std::to_string(value));
    };
    number(columns, p.x), number(rows, p.y);
    std::vector<std::string> walls;
    for (const Json& cell : map.at("cells")) {
        const double at_x = columns[cell.at(x).get<std::int64_t>()], at_y = rows[cell.at(y).get<std::int64_t>()];
        const std::string wall = text_at(cell, "wall"),
                          name = fmt::format("{} {}, {} {}", x, p.x.names[std::size_t(at_x)], y, p.y.names[std::size_t(at_y)]);
        PictureMark mark{
            .shape = MarkShape::box, .role = wall_role(wall), .points = {{at_x + 0.02, at_y + 0.03}, {at_x + 0.98, at_y + 0.97}}};
        if (const auto us = number_at(cell, "time_us")) {
            mark.color = shade_color(std::log(*us / best) / std::log(map_full));
            mark.label = time_text(*us);
            mark.title = fmt::format("{}: {}, {:.2f} times the fastest; {}", name, time_text(*us), *us / best, text_at(cell, "label"));
        } else {
            mark.label = wall.empty() ? "unknown" : wall;
            mark.title = fmt::format("{}: {}", name, text_at(cell, "why"));
            if (std::find(walls.begin(), walls.end(), mark.label) == walls.end()) walls.push_back(mark.label);
        }
        mark.outlined =
            number_at(config, x.c_str()) == cell.at(x).get<double>() && number_at(config, y.c_str()) == cell.at(y).get<double>();
        p.marks.push_back(std::move(mark));
    }
    p.height = 22.0 * double(p.y.names.size());
    p.title =
        fmt::format("{}: why {}x{}", subject_of(document, document), config.at(x).get<std::int64_t>(), config.at(y).get<std::int64_t>());
    p.keys = {{.color = shade_color(0), .text = "the fastest"},
              {.color = shade_color(1), .text = fmt::format("{:g} times that or more", map_full)}};
    for (const std::string& wall : walls)
        p.keys.push_back({.role = wall_role(wall == "unknown" ? "" : wall), .color = {}, .text = "forbidden by " + wall});
    p.caption =
        "Each cell: the best plan's predicted time for its pair of values, all else chosen anew, or the limit that forbids it. Outlined: the plan.";
    return p;
}

std::optional<Picture> roofline(const Json& document, const Json& row) {
    if (!row.contains("roofline") || row.at("roofline").at("levels").empty()) return std::nullopt;
    const Json& roof = row.at("roofline");
    const double flop = roof.at("flop").get<double>();
    const Json& peaks = roof.at("peaks");
    double most_peak = 0, x_low = INFINITY, x_high = 0;
    for (const Json& peak : peaks) most_peak = std::max(most_peak, peak.at("flop_per_s").get<double>());
    const double reached = peaks.back().at("flop_per_s").get<double>();
    for (const Json& level : roof.at("levels")) {
        const double intensity = flop / level.at("bytes").get<double>(), ridge = most_peak / level.at("bytes_per_s").get<double>();
        x_low = std::min({x_low, intensity, ridge}), x_high = std::max({x_high, intensity, ridge});
    }
    Picture p{.id = "roofline",
              .title = subject_of(document, row) + ": under its roofs",
              .x = {.title = "FLOP a byte moved at that level", .scale = AxisScale::log, .low = x_low / 3, .high = x_high * 3},
              .y = {.title = "TFLOP/s", .scale = AxisScale::log}};
    constexpr double tera = 1e12;
    static constexpr Ink roles[] = {Ink::blue, Ink::green, Ink::purple};
    static const std::map<std::string, std::string> names = {{"dram", "DRAM"}, {"l2", "L2"}, {"shared", "shared memory"}};
    std::vector<std::pair<std::string, double>> times;  // by whom
    const auto predicted = row.contains("prediction") ? number_at(row.at("prediction"), "time_us") : number_at(row, "predicted_time_us");
    if (predicted) times.emplace_back("predicted", *predicted);
    if (const auto us = number_at(row, "time_us")) times.emplace_back("measured", *us);
    double y_low = reached / tera;
    for (const auto& [who, us] : times) y_low = std::min(y_low, flop / us * 1e6 / tera);
    std::size_t i = 0;
    for (const Json& level : roof.at("levels")) {
        const double rate = level.at("bytes_per_s").get<double>(), ridge = most_peak / rate,
                     intensity = flop / level.at("bytes").get<double>();
        const Ink role = roles[i++ % std::size(roles)];
        const std::string name = names.count(text_at(level, "level")) ? names.at(text_at(level, "level")) : text_at(level, "level");
        const double from = std::max(p.x.low, y_low / 8 * tera / rate);
        p.marks.push_back(
            {.shape = MarkShape::line,
             .role = role,
             .points = {{from, from * rate / tera}, {ridge, most_peak / tera}},
             .title = fmt::format("{}: {} ({}, {})", name, scaled_text(rate, "B/s"), text_at(level, "key"), text_at(level, "source"))});
        p.keys.push_back({.role = role, .color = {}, .text = fmt::format("{} {}", name, scaled_text(rate, "B/s", 3)), .line = true});
        for (const auto& [who, us] : times) {
            const double tflops = flop / us * 1e6 / tera;
            p.marks.push_back({.shape = MarkShape::point,
                               .role = who == "measured" ? Ink::ink : role,
                               .points = {{intensity, tflops}},
                               .label = who == "measured" ? "" : name,
                               .title = fmt::format("{}, {}: {} FLOP a byte, {:.1f} TFLOP/s", name, who, number_text(intensity), tflops)});
        }
    }
    for (const Json& peak : peaks) {
        const double tflops = peak.at("flop_per_s").get<double>() / tera;
        const bool top = &peak == &peaks.front() && peaks.size() > 1;
        p.marks.push_back({.shape = MarkShape::line,
                           .role = top ? Ink::faint : Ink::orange,
                           .points = {{p.x.low, tflops}, {p.x.high, tflops}},
                           .title = fmt::format("{:.1f} TFLOP/s: {}", tflops, text_at(peak, "source")),
                           .dashed = top});
        p.keys.push_back({.role = top ? Ink::faint : Ink::orange,
                          .color = {},
                          .text = fmt::format("{:.0f} TFLOP/s at {:.0f} MHz{}", tflops, peak.at("clock_mhz").get<double>(),
                                              top ? ", the datasheet's" : ""),
                          .dashed = top,
                          .line = true});
    }
    p.y.low = y_low / 8, p.y.high = most_peak / tera * 2;
    p.caption =
        "A point is as far under a slope as that level's bytes leave time unused; the flat line is the matrix units at the clock that "
        "power is predicted to leave.";
    if (times.size() > 1) p.keys.push_back({.role = Ink::ink, .color = {}, .text = "measured"});
    return p;
}

/// One step of the ring, in cycles from the tile's first load.
struct RingStep {
    std::int64_t slot;
    double asked, ready, begin, end;  ///< of its load; of the computing unit
};

/// Every step of a tile as the model's cycles have it: a slot is asked for when its last user is done, a step begins when its data are there
/// and the one before it has begun a whole steady step ago.
std::vector<RingStep> ring_steps(const Json& pipeline) {
    const auto stages = pipeline.at("stages").get<std::int64_t>(), steps = pipeline.at("steps").get<std::int64_t>();
    const double step = pipeline.at("step_cycles").get<double>(), load = pipeline.at("load_cycles").get<double>(),
                 first = pipeline.at("first_load_cycles").get<double>(), interval = pipeline.at("load_interval_cycles").get<double>(),
                 compute = pipeline.at("units").at(0).at("cycles").get<double>();
    std::vector<RingStep> out;
    for (std::int64_t i = 0; i < steps; ++i) {
        RingStep s{i % stages, 0, 0, 0, 0};
        if (i > 0) s.asked = out.back().asked + interval;
        if (i >= stages) s.asked = std::max(s.asked, out[std::size_t(i - stages)].end);
        s.ready = s.asked + (i == 0 ? first : load);
        s.begin = s.ready;
        if (i > 0) s.begin = std::max({s.begin, out.back().end, out.back().begin + step});
        s.end = s.begin + compute;
        out.push_back(s);
    }
    return out;
}

constexpr std::int64_t most_lanes = 12;

std::optional<Picture> pipeline_picture(const Json& document, const Json& row) {
    if (!row.contains("pipeline") || row.at("pipeline").is_null()) return std::nullopt;
    const Json& pipeline = row.at("pipeline");
    const auto stages = pipeline.at("stages").get<std::int64_t>();
    const std::vector<RingStep> steps = ring_steps(pipeline);
    if (steps.empty() || stages > most_lanes) return std::nullopt;
    Picture p{.id = "pipeline",
              .title = subject_of(document, row) + ": one CTA's pipeline",
              .x = {.title = "SM cycles from the tile's first load"},
              .y = {.title = "", .scale = AxisScale::names}};
    for (std::int64_t slot = 0; slot < stages; ++slot) p.y.names.push_back(fmt::format("slot {}", slot));
    const Json& units = pipeline.at("units");
    for (const Json& unit : units) p.y.names.push_back(text_at(unit, "unit"));
    p.y.names.push_back("epilogue");
    // The beginning, where the ring fills, and the end, with the result; what is alike between them is left out.
    const auto shown = std::size_t(2 * stages + 1), ends = std::size_t(2);
    const bool cut = steps.size() > shown + ends + 1;
    const std::size_t resumed = cut ? steps.size() - ends : shown;
    const double hole = pipeline.at("step_cycles").get<double>() / 2,
                 shift = cut ? steps[resumed].begin - (steps[shown - 1].end + hole) : 0;
    const auto drawn_at = [&](std::size_t i, double cycle) { return i >= resumed ? cycle - shift : cycle; };
    const double cut_at = cut ? steps[shown - 1].end : INFINITY;
    const auto box = [&](std::size_t i, double lane, double from, double to, Ink role, std::string label, std::string title) {
        double a = drawn_at(i, from), b = drawn_at(i, to);
        if (cut && i >= resumed) a = std::max(a, cut_at + hole);
        if (cut && i < resumed) b = std::min(b, cut_at);
        if (!(b > a)) return;
        p.marks.push_back({.shape = MarkShape::box,
                           .role = role,
                           .points = {{a, lane + inset}, {b, lane + 1 - inset}},
                           .label = std::move(label),
                           .title = std::move(title)});
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (cut && i >= shown && i < resumed) continue;
        const RingStep& s = steps[i];
        box(i, double(s.slot), s.asked, s.ready, Ink::blue, "load",
            fmt::format("load of step {}: cycles {:.0f} to {:.0f}", i, s.asked, s.ready));
        box(i, double(s.slot), s.ready, s.end, Ink::grey, "in use",
            fmt::format("slot holds step {}: ready at cycle {:.0f}, free at {:.0f}", i, s.ready, s.end));
        for (std::size_t u = 0; u < units.size(); ++u) {
            const double cycles = units[u].at("cycles").get<double>();
            box(i, double(stages) + double(u), s.begin, s.begin + cycles, u == 0 ? Ink::orange : Ink::ochre, std::to_string(i),
                fmt::format("step {}, {}: {:.0f} cycles", i, text_at(units[u], "unit"), cycles));
        }
    }
    const double end = drawn_at(steps.size() - 1, steps.back().end), epilogue = pipeline.at("epilogue_cycles").get<double>(),
                 turn = pipeline.at("turn_cycles").get<double>();
    const bool overlapped = pipeline.at("epilogue_overlapped").get<bool>();
    const double lane = double(stages) + double(units.size());
    p.marks.push_back({.shape = MarkShape::box,
                       .role = Ink::green,
                       .points = {{end, lane + inset}, {end + epilogue, lane + 1 - inset}},
                       .label = "result",
                       .title = fmt::format("epilogue: {:.0f} cycles{}", epilogue, overlapped ? ", beside the next tile's steps" : "")});
    const double last = std::max(end + epilogue, end + turn) * 1.01;
    p.x.high = last;
    PictureAxis until = p.x;
    if (cut) {
        until.high = cut_at;
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::faint,
                           .points = {{cut_at, 0.0}, {cut_at + hole, double(p.y.names.size())}},
                           .title = fmt::format("{} steps alike, {:.0f} cycles each, are left out", resumed - shown,
                                                pipeline.at("step_cycles").get<double>()),
                           .soft = true});
    }
    p.x.ticks = ticks_of(until);
    if (cut) {
        while (!p.x.ticks.empty() && p.x.ticks.back().first > 0.75 * cut_at) p.x.ticks.pop_back();
        p.x.ticks.emplace_back(end, number_text(std::round(steps.back().end)));
    }
    p.height = 20.0 * double(p.y.names.size());
    p.keys = {{.role = Ink::blue, .color = {}, .text = "load on its way"},
              {.role = Ink::grey, .color = {}, .text = "in its slot"},
              {.role = Ink::orange, .color = {}, .text = text_at(units.at(0), "unit")},
              {.role = Ink::green, .color = {}, .text = "result"}};
    if (units.size() > 1) p.keys.insert(p.keys.begin() + 3, {.role = Ink::ochre, .color = {}, .text = "beside it"});
    p.caption = fmt::format(
        "By the model's cycles at {:.0f} MHz: {} in a ring of {}, {:.0f} cycles a steady step.{} {} holds a tile's result {:.0f} cycles{}.",
        pipeline.at("clock_mhz").get<double>(), plural(std::int64_t(steps.size()), "step"), plural(stages, "stage"),
        pipeline.at("step_cycles").get<double>(), cut ? fmt::format(" The band leaves out {} steps alike.", resumed - shown) : "",
        "The epilogue", epilogue, overlapped ? " beside the next tile" : "");
    return p;
}

void add_row(std::vector<Picture>& out, const Json& document, const Json& row) {
    for (auto& picture : {waterfall(document, row), roofline(document, row), pipeline_picture(document, row)})
        if (picture) out.push_back(*picture);
}

}  // namespace

Json pipeline_trace(const Json& pipeline) {
    Json events = Json::array();
    const double per_us = pipeline.at("clock_mhz").get<double>();  // cycles
    const auto stages = pipeline.at("stages").get<std::int64_t>();
    const Json& units = pipeline.at("units");
    const auto thread = [&](std::int64_t id, const std::string& name) {
        events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", id}, {"name", "thread_name"}, {"args", {{"name", name}}}});
        events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", id}, {"name", "thread_sort_index"}, {"args", {{"sort_index", id}}}});
    };
    events.push_back({{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "one CTA, one tile, by the model"}}}});
    for (std::int64_t slot = 0; slot < stages; ++slot) thread(slot, fmt::format("slot {}", slot));
    for (std::size_t u = 0; u < units.size(); ++u) thread(stages + std::int64_t(u), text_at(units[u], "unit"));
    const std::int64_t epilogue = stages + std::int64_t(units.size());
    thread(epilogue, "epilogue");
    const auto event = [&](std::int64_t id, std::string name, double from, double to) {
        if (to > from)
            events.push_back({{"ph", "X"},
                              {"pid", 1},
                              {"tid", id},
                              {"name", std::move(name)},
                              {"ts", from / per_us},
                              {"dur", (to - from) / per_us},
                              {"args", {{"cycle", std::llround(from)}, {"cycles", std::llround(to - from)}}}});
    };
    const std::vector<RingStep> steps = ring_steps(pipeline);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const RingStep& s = steps[i];
        event(s.slot, fmt::format("load {}", i), s.asked, s.ready);
        event(s.slot, fmt::format("holds {}", i), s.ready, s.end);
        for (std::size_t u = 0; u < units.size(); ++u)
            event(stages + std::int64_t(u), fmt::format("step {}", i), s.begin, s.begin + units[u].at("cycles").get<double>());
    }
    if (!steps.empty()) event(epilogue, "epilogue", steps.back().end, steps.back().end + pipeline.at("epilogue_cycles").get<double>());
    return {{"traceEvents", events}, {"displayTimeUnit", "ns"}};
}

std::vector<Picture> plan_pictures(const Json& document) {
    std::vector<Picture> out;
    if (!document.contains("plans") || document.at("plans").empty()) return out;
    add_row(out, document, document.at("plans").at(0));
    if (auto map = tile_map(document)) out.insert(out.begin() + (out.empty() ? 0 : 1), std::move(*map));
    return out;
}

std::vector<Picture> measurement_pictures(const Json& document) {
    std::vector<Picture> out;
    if (document.contains("rows") && !document.at("rows").empty()) add_row(out, document, document.at("rows").at(0));
    return out;
}

}  // namespace rooftile
