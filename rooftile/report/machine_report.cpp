#include "rooftile/report/machine_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// What a list of machines shows of each: title and key.
struct Highlight {
    const char* title;
    const char* key;
};
constexpr Highlight highlights[] = {
    {"SMs", "sm.count"},   {"shared/CTA", "shared.per_cta"}, {"L2", "l2.size"},
    {"DRAM", "dram.size"}, {"DRAM rate", "dram.bandwidth"},
};

}  // namespace

std::string base_unit(const Fact& fact) {
    struct Part {
        const char* name;
        int power;
    };
    const Dimension d = fact.dimension;
    const Part parts[] = {
        {"B", d.byte}, {"FLOP", d.flop}, {"cycle", d.cycle}, {"s", d.second}, {"J", d.joule}};
    std::string above, below;
    for (const Part& part : parts) {
        for (int i = 0; i < part.power; ++i) above += (above.empty() ? "" : " ") + std::string(part.name);
        for (int i = 0; i > part.power; --i) below += "/" + std::string(part.name);
    }
    if (above == "cycle" && below.empty()) above = "cycles";
    if (fact.per == Per::sm) below += "/SM";
    if (above.empty() && !below.empty()) above = "1";
    return above + below;
}

std::vector<std::string> unknown_keys(const Machine& machine) {
    std::vector<std::string> out;
    for (const Key& key : machine_keys())
        if (key.name.find('*') == std::string_view::npos && !machine.find(key.name))
            out.emplace_back(key.name);
    return out;
}

Json machine_document(const DocumentContext& context, const Machine& machine) {
    Json facts = Json::array();
    for (const auto& [key, fact] : machine.facts)
        facts.push_back({{"key", key},
                         {"value", json_number(fact.value)},
                         {"unit", base_unit(fact)},
                         {"text", fact.text},
                         {"source", fact.source},
                         {"calibration", fact.calibration.empty() ? Json() : Json(fact.calibration)}});
    Json features = Json::object();
    for (const auto& [name, value] : machine.features) features[name] = value;
    return {{"schema", "rooftile/machine/1"},
            {"context", context_json(context)},
            {"id", machine.id},
            {"name", machine.name},
            {"arch", machine.arch},
            {"device_names", machine.device_names},
            {"facts", std::move(facts)},
            {"features", std::move(features)},
            {"unknown", unknown_keys(machine)}};
}

std::string machine_text(const Machine& machine, const Terminal& terminal) {
    std::string out =
        terminal.paint(machine.id, Tone::strong) + "  " + terminal.paint(machine.name, Tone::plain);
    out += fmt::format(
        "  {}\n", terminal.paint(machine.arch.empty() ? "no architecture named" : machine.arch, Tone::plain));
    if (!machine.device_names.empty())
        out +=
            fmt::format("the driver calls it {}\n", displayable(joined(machine.device_names), terminal.utf8));
    // One alignment for all sections: the columns of a long list stay where the eye expects them.
    std::vector<Entry> entries;
    for (const auto& [key, fact] : machine.facts)
        entries.push_back({key, fact.text.ends_with(" 1") ? fact.text.substr(0, fact.text.size() - 2) : fact.text,
                           fact.calibration.empty()
                               ? fact.source
                               : fmt::format("calibration of {}: {}", fact.calibration, fact.source)});
    out += "\n" + entries_text(entries, 2, terminal);
    std::string yes, no;
    for (const auto& [name, value] : machine.features) (value ? yes : no) += " " + name;
    auto line = [&](std::string_view title, const std::string& text) {
        if (!text.empty())
            out += fmt::format("{:<9}{}\n", title,
                               wrapped(displayable(text, terminal.utf8), terminal.prose() - 9, 9));
    };
    out += '\n';
    line("has", yes.empty() ? yes : yes.substr(1));
    line("lacks", no.empty() ? no : no.substr(1));
    line("unknown", joined(unknown_keys(machine)));
    return out;
}

std::string machines_text(const std::vector<Machine>& machines, const Terminal& terminal) {
    std::vector<Table::Column> columns = {
        {"id", Table::Align::left}, {"name", Table::Align::left, 5}, {"arch", Table::Align::left, 1}};
    int drop = 1;
    for (const Highlight& h : highlights) columns.push_back({h.title, Table::Align::right, ++drop});
    Table table(columns);
    for (const Machine& machine : machines) {
        std::vector<Table::Cell> cells = {{machine.id, Tone::strong}, {machine.name}, {machine.arch}};
        for (const Highlight& h : highlights) {
            const Fact* fact = machine.find(h.key);
            cells.push_back(fact ? Table::Cell{fact->text} : Table::Cell{"?", Tone::faint});
        }
        table.row(std::move(cells));
    }
    return table.text(terminal, 0);
}

Json machines_document(const DocumentContext& context, const std::vector<Machine>& machines) {
    Json list = Json::array();
    for (const Machine& m : machines)
        list.push_back({{"id", m.id}, {"name", m.name}, {"arch", m.arch}, {"machine_hash", m.hash()}});
    return {
        {"schema", "rooftile/machines/1"}, {"context", context_json(context)}, {"machines", std::move(list)}};
}

}  // namespace rooftile
