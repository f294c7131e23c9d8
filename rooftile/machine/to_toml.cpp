#include <fmt/core.h>

#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

std::string toml_string(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

std::string fact_line(const std::string& key, const Fact& fact) {
    const NumberParts parts = parts_of(fact.text);
    std::string line = fmt::format("{} = {{value = {}", key, parts.number);
    if (!parts.unit.empty()) line += fmt::format(", unit = {}", toml_string(parts.unit));
    if (!fact.source.empty())
        line += fmt::format(", source = {}", toml_string(printable(fact.source, max_source_bytes)));
    if (!fact.calibration.empty()) line += fmt::format(", calibration = {}", toml_string(fact.calibration));
    return line + "}\n";
}

}  // namespace

std::string to_toml(const Machine& machine) {
    std::string text = fmt::format("schema = \"{}\"\nid = {}\nname = {}\n", "rooftile/machine/1",
                                   toml_string(machine.id), toml_string(machine.name));
    if (!machine.arch.empty()) text += fmt::format("arch = {}\n", toml_string(machine.arch));
    const Machine inherited = inherited_machine(machine.arch, machine.id);
    if (!machine.device_names.empty()) {
        text += "device_names = [";
        for (const auto& name : machine.device_names) text += toml_string(name) + ", ";
        text.replace(text.size() - 2, 2, "]\n");
    }
    text += '\n';
    for (const auto& [key, fact] : machine.facts) text += fact_line(key, fact);
    // What is inherited and this machine does not know has to be said, or reading would bring it back.
    for (const auto& [key, fact] : inherited.facts)
        if (!machine.facts.count(key)) text += key + " = \"unknown\"\n";
    text += "\n[features]\n";
    for (const auto& [name, present] : machine.features) text += fmt::format("{} = {}\n", name, present);
    for (const auto& [name, present] : inherited.features)
        if (!machine.features.count(name)) text += name + " = \"unknown\"\n";
    return text;
}

}  // namespace rooftile
