#include "rooftile/report/machine_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
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

std::string text_of(const Machine& machine, std::string_view key) {
    const Fact* fact = machine.find(key);
    return fact ? fact->text : "?";
}

/// "132 SMs, 1.98 GHz boost, 1.83 GHz under tensor load": of the keys that are known.
std::string known_of(const Machine& machine, std::initializer_list<std::pair<std::string_view, std::string_view>> keys) {
    std::string out;
    for (const auto& [key, words] : keys)
        if (const Fact* fact = machine.find(key)) out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", fact->text, words.empty() ? "" : " ", words);
    return out;
}

/// The rate of matrix products of each type that has one, and the intensity from which they, not DRAM, limit.
Table roofs_table(const Machine& machine) {
    Table table({{"roof", Table::Align::left}, {"instruction", Table::Align::left}, {"peak"}, {"sustained"}, {"DRAM limits below"}});
    const auto clock = machine.number<Clock>("clock.tensor");
    const auto dram = dram_bandwidth(machine);
    for (const std::string_view type : input_types())
        for (const std::string_view sums : accumulator_types()) {
            std::optional<FlopRate> peak;
            std::string_view fastest;
            for (const std::string_view family : instruction_families())
                if (const auto rate = peak_flops(machine, family, type, sums, clock); rate && (!peak || *rate > *peak)) peak = rate, fastest = family;
            if (!peak || sums == "fp16") continue;  // of fp16 inputs the usual sums are fp32
            table.row({{std::string(type)}, {std::string(fastest)}, {with_unit(number_text(peak->value / 1e12), "TFLOP/s")},
                       {text_of(machine, "matmul.sustained." + std::string(type))},
                       {dram ? with_unit(number_text(peak->value / dram->value, 3), "FLOP/B") : "?"}});
        }
    return table;
}

Table levels_table(const Machine& machine) {
    struct Level {
        const char *name, *size, *whole, *rate, *latency;
    };
    static constexpr Level levels[] = {{"registers", "sm.registers", "an SM", "", "arithmetic.latency"},
                                       {"shared memory", "shared.per_sm", "an SM", "shared.bandwidth", "shared.latency"},
                                       {"L2", "l2.size", "", "l2.bandwidth", "l2.latency"},
                                       {"DRAM", "dram.size", "", "dram.bandwidth", "dram.latency"}};
    Table table({{"memory", Table::Align::left}, {"size"}, {"rate"}, {"latency"}});
    for (const Level& level : levels)
        table.row({{level.name}, {with_unit(text_of(machine, level.size), level.whole)}, {*level.rate ? text_of(machine, level.rate) : "-"},
                   {text_of(machine, level.latency)}});
    return table;
}

/// "93 numbers: 41 measured on a GPU, 17 fitted, 35 stated; 12 unknown".
std::string status_text(const Machine& machine) {
    int measured = 0, fitted = 0, unchecked = 0;
    for (const auto& [key, fact] : machine.facts) {
        if (!fact.calibration.empty()) ++fitted;
        else if (fact.source.starts_with("measured") || fact.source.starts_with("one ")) ++measured;
        else if (fact.source.find("unchecked") != std::string::npos) ++unchecked;
    }
    const int all = int(machine.facts.size());
    std::string out = fmt::format("{} numbers: {} measured, {} fitted to runs, {} stated by others, {} unchecked; {} unknown", all, measured, fitted,
                                  all - measured - fitted - unchecked, unchecked, unknown_keys(machine).size());
    const std::string note = calibration_note(machine);
    return note.empty() ? out : out + "; " + note;
}

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

namespace {

std::string heading(const Machine& machine, const Terminal& terminal) {
    return fmt::format("{}  {}  {}\n", terminal.paint(machine.id, Tone::strong), displayable(machine.name, terminal.utf8),
                       machine.arch.empty() ? "no architecture named" : machine.arch);
}

}  // namespace

std::string machine_summary(const Machine& machine, const Terminal& terminal) {
    const std::string compute = known_of(machine, {{"sm.count", ""}, {"clock.boost", "boost"}, {"clock.tensor", "under tensor load"}, {"power.tdp", "limit"}});
    std::string out = heading(machine, terminal) + (compute.empty() ? "" : compute + "\n");
    std::string has;
    for (const auto& [name, value] : machine.features)
        if (value) has += (has.empty() ? "" : " ") + name;
    out += "\n" + roofs_table(machine).text(terminal) + "\n" + levels_table(machine).text(terminal) + "\n";
    if (!has.empty()) out += entry("has ", has, terminal);
    return out + entry("file", status_text(machine), terminal) + entry("more", "--all shows every number with its source", terminal);
}

std::string machine_text(const Machine& machine, const Terminal& terminal) {
    std::string out = heading(machine, terminal);
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
