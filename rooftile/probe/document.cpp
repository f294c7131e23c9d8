#include "rooftile/probe/document.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/core.h>

#include "rooftile/report/number.hpp"

namespace rooftile {

Json result_json(const ProbeResult& result) {
    Json json;
    json["probe"] = result.probe;
    json["seconds"] = json_number(result.seconds);
    json["failure"] = result.failure.empty() ? Json(nullptr) : Json(result.failure);
    json["values"] = Json::array();
    for (const ProbeValue& v : result.values)
        json["values"].push_back({{"name", v.name},
                                  {"key", v.key.empty() ? Json(nullptr) : Json(v.key)},
                                  {"value", json_number(v.value)},
                                  {"unit", v.unit},
                                  {"spread", json_number(v.spread)},
                                  {"samples", v.samples},
                                  {"note", v.note}});
    json["points"] = Json::array();
    for (const ProbePoint& p : result.points) {
        Json row = {{"series", p.series}, {"label", p.label}};
        for (const auto& [name, value] : p.fields) row[name] = json_number(value);
        json["points"].push_back(std::move(row));
    }
    json["notes"] = result.notes;
    return json;
}

ProbeResult result_of(const Json& json) {
    const auto text = [](const Json& j) { return j.is_null() ? std::string() : j.get<std::string>(); };
    const auto number = [](const Json& j) { return j.is_null() ? std::nan("") : j.get<double>(); };
    ProbeResult result;
    result.probe = json.at("probe").get<std::string>();
    result.seconds = number(json.at("seconds"));
    result.failure = text(json.at("failure"));
    for (const Json& v : json.at("values"))
        result.values.push_back({text(v.at("name")), text(v.at("key")), number(v.at("value")),
                                 text(v.at("unit")), number(v.at("spread")), v.at("samples").get<int>(),
                                 text(v.at("note"))});
    for (const Json& p : json.at("points")) {
        ProbePoint point;
        for (const auto& [name, value] : p.items()) {
            if (name == "series") point.series = text(value);
            else if (name == "label") point.label = text(value);
            else point.add(name, number(value));
        }
        result.points.push_back(std::move(point));
    }
    result.notes = json.at("notes").get<std::vector<std::string>>();
    return result;
}

Json probe_document(const DocumentContext& context, const ProbeRun& run,
                    const std::vector<std::string>& notes) {
    Json document;
    document["schema"] = "rooftile/probe/1";
    document["context"] = context_json(context);
    document["machine"] = {{"id", run.gpu.machine.id}, {"name", run.gpu.machine.name}};
    document["power_limit_w"] =
        run.gpu.power_limit_w > 0 ? json_number(run.gpu.power_limit_w) : Json(nullptr);
    document["seconds"] = json_number(run.seconds);
    document["probes"] = Json::array();
    document["values"] = Json::array();
    document["points"] = Json::array();
    document["notes"] = notes;
    for (const ProbeResult& result : run.results) {
        const Json one = result_json(result);
        document["probes"].push_back(
            {{"name", result.probe}, {"seconds", one["seconds"]}, {"failure", one["failure"]}});
        for (const char* part : {"values", "points"})
            for (Json row : one[part]) {
                row["probe"] = result.probe;
                document[part].push_back(std::move(row));
            }
        for (const std::string& note : result.notes) document["notes"].push_back(note);
    }
    document["differences"] = Json::array();
    for (const ProbeDifference& d : differences(run))
        document["differences"].push_back({{"key", d.key},
                                           {"shipped", d.shipped},
                                           {"measured", d.measured},
                                           {"ratio", json_number(d.ratio)}});
    return document;
}

std::string value_line(const ProbeValue& value) {
    return fmt::format("{}  {} {} +- {} ({} sample{}){}", value.name, number_text(value.value), value.unit,
                       number_text(value.spread, 2), value.samples, value.samples == 1 ? "" : "s",
                       value.note.empty() ? "" : "; " + value.note);
}

std::string probe_text(const ProbeRun& run, const std::vector<std::string>& notes, const Terminal& terminal) {
    std::string out = fmt::format("{}, driver {}: {} probes in {:.0f} s\n\n", displayable(run.gpu.name),
                                  run.gpu.driver, run.results.size(), run.seconds);
    const std::vector<ProbeDifference> different = differences(run);
    Table table({{"number", Table::Align::left, 0},
                 {"measured", Table::Align::right, 0},
                 {"spread", Table::Align::right, 2},
                 {"unit", Table::Align::left, 0},
                 {"machine file", Table::Align::right, 1},
                 {"", Table::Align::left, 3}});
    for (const ProbeResult& result : run.results) {
        for (const ProbeValue& v : result.values) {
            const auto fact = v.key.empty() ? run.gpu.machine.facts.end() : run.gpu.machine.facts.find(v.key);
            std::string mark;
            for (const ProbeDifference& d : different)
                if (d.key == v.key) mark = fmt::format("{:+.0f} %", 100 * (d.ratio - 1));
            table.row({{v.name, v.key.empty() ? Tone::faint : Tone::plain},
                       {number_text(v.value)},
                       {number_text(v.spread, 2)},
                       {v.unit},
                       {fact == run.gpu.machine.facts.end() ? "" : fact->second.text},
                       {mark, Tone::bad}});
        }
    }
    out += table.text(terminal);
    out += different.empty() ? "\nNo number differs by more than 10 % from the machine file.\n"
                             : fmt::format("\n{} numbers differ by more than 10 % from the machine file:\n",
                                           different.size());
    for (const ProbeDifference& d : different)
        out += fmt::format("  {}: measured {}, the file says {} (x {:.2f})\n", d.key, d.measured, d.shipped,
                           d.ratio);
    for (const ProbeResult& result : run.results)
        if (!result.failure.empty())
            out +=
                "\n" + terminal.paint(fmt::format("{}: {}", result.probe, result.failure), Tone::bad) + "\n";
    for (const ProbeResult& result : run.results)
        for (const std::string& note : result.notes) out += "note  " + displayable(note) + "\n";
    for (const std::string& note : notes) out += "note  " + displayable(note) + "\n";
    return out;
}

}  // namespace rooftile
