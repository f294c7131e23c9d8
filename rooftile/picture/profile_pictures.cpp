// Of a profile: where the time of each device goes, kernels beside what they should take, and device time by range.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_kernels = 10;

double figure(const Json& object, const char* key) { return object.at(key).get<double>(); }

/// "cut to its first letters...".
std::string cut(const std::string& text, std::size_t letters) {
    return text.size() <= letters ? text : text.substr(0, letters - 3) + "...";
}

std::optional<Picture> device_picture(const Json& document) {
    Picture p{.id = "device",
              .title = "Where the time of each device goes",
              .x = {.title = "share of the time, %", .low = 0, .high = 100},
              .y = {.title = "", .scale = AxisScale::names}};
    struct Part {
        const char *key, *name;
        Ink role;
    };
    static constexpr Part parts[] = {{"host_us", "nothing asked for", Ink::orange},
                                     {"waited_us", "host waited", Ink::ochre},
                                     {"launch_us", "launch gaps", Ink::purple},
                                     {"dependency_us", "dependency", Ink::green},
                                     {"unknown_us", "unknown", Ink::grey}};
    std::map<Ink, std::string> shown;
    for (const Json& d : document.at("devices")) {
        const double y = double(p.y.names.size()), whole = figure(d, "window_us");
        p.y.names.push_back(fmt::format("GPU {}", d.at("index").dump()));
        double from = 0;
        const auto add = [&](double us, const char* name, Ink role) {
            if (us <= 0 || whole <= 0) return;
            const double to = from + 100 * us / whole;
            p.marks.push_back({.shape = MarkShape::box,
                               .role = role,
                               .points = {{from, y + 0.15}, {to, y + 0.85}},
                               .title = fmt::format("{}: {}, {:.1f} %", name, time_text(us), to - from)});
            shown[role] = name;
            from = to;
        };
        add(figure(d, "busy_us"), "busy", Ink::blue);
        for (const Part& part : parts) add(figure(d.at("idle"), part.key), part.name, part.role);
    }
    if (p.marks.empty()) return std::nullopt;  // nothing was done, or in no time
    for (const auto& [role, name] : shown) {
        PictureKey key;
        key.role = role, key.text = name;
        p.keys.push_back(key);
    }
    p.height = 40 + 40 * double(p.y.names.size());
    p.caption = "Idle time by what would have ended it earlier.";
    return p;
}

std::optional<Picture> kernel_picture(const Json& document) {
    struct Row {
        std::string name;
        const Json* launch;
    };
    std::vector<Row> rows;
    for (const Json& k : document.at("kernels"))
        for (const Json& launch : k.at("launches"))
            if (number_at(launch, "possible_us") || number_at(launch, "ours_us")) rows.push_back({text_at(launch, "problem"), &launch});
    if (rows.empty()) return std::nullopt;
    std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return figure(*a.launch, "time_us") > figure(*b.launch, "time_us"); });
    if (rows.size() > most_kernels) rows.resize(most_kernels);
    Picture p{.id = "kernels",
              .title = "What kernels take, and what they should",
              .x = {.title = "us a call", .low = 0, .high = 0},
              .y = {.title = "", .scale = AxisScale::names}};
    for (const Row& row : rows) {
        const double y = double(p.y.names.size()), mean = figure(*row.launch, "mean_us");
        p.y.names.push_back(cut(row.name, 24));
        p.marks.push_back({.shape = MarkShape::box,
                           .role = Ink::blue,
                           .points = {{0, y + 0.2}, {mean, y + 0.8}},
                           .title = fmt::format("{}: {} measured", row.name, time_text(mean))});
        p.x.high = std::max(p.x.high, 1.05 * mean);
        const auto mark = [&](const char* key, const char* name, Ink role) {
            const auto us = number_at(*row.launch, key);
            if (!us) return;
            p.marks.push_back({.shape = MarkShape::line,
                               .role = role,
                               .points = {{*us, y + 0.05}, {*us, y + 0.95}},
                               .title = fmt::format("{}: {} {}", row.name, time_text(*us), name)});
            p.x.high = std::max(p.x.high, 1.05 * *us);
        };
        mark("possible_us", "possible", Ink::ink);
        mark("ours_us", "ours, predicted", Ink::green);
        mark("predicted_us", "predicted for this kernel", Ink::orange);
    }
    const auto key = [&](Ink role, const char* text, bool line) {
        PictureKey k;
        k.role = role, k.text = text, k.line = line;
        p.keys.push_back(k);
    };
    key(Ink::blue, "measured", false), key(Ink::orange, "predicted for it", true), key(Ink::green, "ours", true),
        key(Ink::ink, "possible", true);
    p.height = 30 + 26 * double(rows.size());
    p.caption = "Kernels whose problem is known, those first that take most time together.";
    return p;
}

/// Device time under a path of ranges.
struct Frame {
    double us = 0;
    std::map<std::string, Frame> inner;
};

void add_frames(Picture& p, const Frame& frame, double from, int depth, double whole) {
    std::vector<std::pair<std::string, const Frame*>> inner;
    for (const auto& [name, each] : frame.inner) inner.emplace_back(name, &each);
    std::ranges::stable_sort(inner, [](const auto& a, const auto& b) { return a.second->us > b.second->us; });
    static constexpr Ink roles[] = {Ink::blue, Ink::green, Ink::purple, Ink::ochre, Ink::orange};
    for (const auto& [name, each] : inner) {
        const double width = 100 * each->us / whole;
        if (width >= 0.1) {
            const bool kernel = each->inner.empty();
            p.marks.push_back({.shape = MarkShape::box,
                               .role = kernel ? Ink::grey : roles[std::size_t(depth) % std::size(roles)],
                               .points = {{from, double(depth) + 0.04}, {from + width, double(depth) + 0.96}},
                               .label = name,
                               .title = fmt::format("{}: {}, {:.1f} %", name, time_text(each->us), width)});
            add_frames(p, *each, from, depth + 1, whole);
        }
        from += width;
    }
}

int depth_of(const Frame& frame) {
    int most = 0;
    for (const auto& [name, each] : frame.inner) most = std::max(most, 1 + depth_of(each));
    return most;
}

std::optional<Picture> flame_picture(const Json& document) {
    Frame root;
    for (const Json& stack : document.at("stacks")) {
        Frame* at = &root;
        at->us += figure(stack, "time_us");
        for (const Json& name : stack.at("frames")) {
            at = &at->inner[name.get<std::string>()];
            at->us += figure(stack, "time_us");
        }
    }
    if (root.us <= 0) return std::nullopt;
    Picture p{.id = "flame",
              .title = "Device time by range and kernel",
              .x = {.title = "share of device time, %", .low = 0, .high = 100},
              .y = {.title = ""}};
    const int depth = depth_of(root);
    p.y.low = 0, p.y.high = depth, p.y.shown = false;
    add_frames(p, root, 0, 0, root.us);
    p.height = 24.0 * depth + 20;
    p.caption = "Ranges below, what they asked for above; the widest first.";
    return p;
}

}  // namespace

std::vector<Picture> profile_pictures(const Json& document) {
    std::vector<Picture> out;
    for (auto make : {device_picture, kernel_picture, flame_picture})
        if (auto picture = make(document)) out.push_back(std::move(*picture));
    return out;
}

}  // namespace rooftile
