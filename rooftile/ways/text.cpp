#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/report/number.hpp"
#include "rooftile/ways/ways.hpp"

namespace rooftile {
namespace {

std::string time(const Json& object, const char* key) {
    const auto us = number_at(object, key);
    return us ? time_text(*us) : "-";
}

std::string title(const Json& d) {
    std::string out = fmt::format("{} {} {}", text_at(d, "operator"), text_at(d, "shape"), text_at(d, "type"));
    const std::string gpu = text_at(d, "gpu");
    return out + (gpu.empty() ? ", on the CPU: no device times" : " on " + gpu);
}

std::string times_text(const Json& d, const Terminal& terminal) {
    Table table({{"way", Table::Align::left},
                 {"time"},
                 {"in kernels", Table::Align::right, 2, true},
                 {"of the roof"},
                 {"kernels"},
                 {"error"},
                 {"host", Table::Align::right, 3, true}});
    for (const Json& way : d.at("ways")) {
        const auto share = number_at(way, "roof_fraction"), launches = number_at(way, "launches"), error = number_at(way, "error");
        const bool right = way.value("right", Json(nullptr)).is_boolean() && way.at("right").get<bool>();
        const bool absent = !text_at(way, "absent").empty();
        table.row({{text_at(way, "name")},
                   {time(way, "time_us")},
                   {time(way, "kernel_us")},
                   {share ? percent_text(*share) : "-"},
                   {launches ? number_text(*launches) : "-"},
                   {absent   ? "absent"
                    : !right ? "wrong"
                    : error  ? number_text(*error, 2)
                             : "-",
                    absent  ? Tone::faint
                    : right ? Tone::plain
                            : Tone::bad},
                   {time(way, "host_us")}});
    }
    std::string out = table.text(terminal);
    out += "  "
           + wrapped(
               "time: from a call's first kernel to the end of its last, gaps included, the median. error: the largest difference from "
               "fp64, as a "
               "share of the value and the result's usual size together.",
               terminal.prose() - 2, 2)
           + "\n";
    for (const Json& way : d.at("ways")) {
        const std::string absent = text_at(way, "absent");
        if (!absent.empty()) out += entry(text_at(way, "name"), displayable(absent, terminal.utf8), terminal);
        else if (way.at("right").is_boolean() && !way.at("right").get<bool>())
            out += entry(text_at(way, "name"),
                         fmt::format("wrong: its error is {}, more than rounding makes", number_or_unknown(number_at(way, "error"))),
                         terminal);
    }
    return out;
}

/// Who decides what, and how much one's own code changes.
std::string work_text(const Json& d, const Terminal& terminal) {
    const auto left = Table::Align::left;
    Table table({{"who decides", left}, {"code", left}, {"coalescing", left}, {"shared memory", left}, {"in an SM", left}, {"SMs", left}});
    for (const Json& way : d.at("ways"))
        table.row({{text_at(way, "name")},
                   {text_at(way, "code_to_change")},
                   {text_at(way, "coalescing")},
                   {text_at(way, "shared_memory")},
                   {text_at(way, "within_sm")},
                   {text_at(way, "across_sms")}});
    return table.text(terminal) + "  "
           + wrapped("code: how much of a program changes to use it. in an SM, SMs: scheduling in an SM and across SMs.",
                     terminal.prose() - 2, 2)
           + "\n";
}

std::string kernels_text(const Json& d, const Terminal& terminal) {
    std::string out;
    for (const Json& way : d.at("ways")) {
        std::vector<std::string> names;
        for (const Json& name : way.at("kernels")) names.push_back(name.get<std::string>());
        if (!names.empty()) out += entry(text_at(way, "name"), displayable(joined(names), terminal.utf8), terminal);
    }
    return out.empty() ? "" : terminal.paint("Kernels", Tone::strong) + "\n" + out + "\n";
}

std::string elsewhere_text(const Json& d, const Terminal& terminal) {
    if (d.at("elsewhere").empty()) return "";
    Table table({{"machine", Table::Align::left}, {"possible"}, {"predicted"}, {"of the roof"}, {"", Table::Align::left, 1, true}});
    for (const Json& row : d.at("elsewhere")) {
        const auto possible = number_at(row, "possible_us"), predicted = number_at(row, "predicted_us");
        table.row({{text_at(row, "machine")},
                   {time(row, "possible_us")},
                   {time(row, "predicted_us")},
                   {possible && predicted ? percent_text(*possible / *predicted) : "-"},
                   {displayable(text_at(row, "why_not"), terminal.utf8), Tone::faint}});
    }
    return terminal.paint("The same operator by Rooftile on other machines", Tone::strong) + "\n" + table.text(terminal);
}

}  // namespace

std::string ways_text(const Json& d, const Terminal& terminal) {
    const Json& p = d.at("prediction");
    std::string out = terminal.paint(displayable(title(d), terminal.utf8), Tone::strong) + "\n";
    out += fmt::format("possible {}, predicted {} by Rooftile, by the numbers of {}\n\n", time(p, "possible_us"), time(p, "predicted_us"),
                       text_at(p, "machine"));
    out += times_text(d, terminal) + "\n" + work_text(d, terminal) + "\n" + kernels_text(d, terminal) + elsewhere_text(d, terminal);
    if (!text_at(p, "command").empty()) out += "\n" + entry("why", text_at(p, "command"), terminal);
    return out;
}

}  // namespace rooftile
