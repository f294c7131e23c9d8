#include "rooftile/report/formulas.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <sstream>

#include "rooftile/machine/keys.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

constexpr std::string_view blank = "________";

std::vector<std::string> keys_of(const Symbol& symbol) {
    std::vector<std::string> keys;
    std::istringstream words{std::string(symbol.from)};
    if (symbol.machine)
        for (std::string key; words >> key;) keys.push_back(key);
    return keys;
}

const Key& machine_key(std::string_view name) {
    const auto keys = machine_keys();
    const auto found = std::ranges::find(keys, name, &Key::name);
    if (found != keys.end()) return *found;
    const KeyMatch match = match_key(name);  // "energy.flop.bf16" of "energy.flop.*"
    assert(match.key && "a symbol names a key that machines do not have");
    return *match.key;
}

/// A machine's number has the units that its key accepts.
std::string unit_of(const Symbol& symbol) {
    const std::vector<std::string> keys = keys_of(symbol);
    return keys.empty() ? std::string(symbol.unit) : std::string(machine_key(keys.front()).units);
}

std::string from_of(const Symbol& symbol) {
    std::string from;
    for (const std::string& key : keys_of(symbol)) from += (from.empty() ? "" : " or ") + key;
    return symbol.machine ? from : std::string(symbol.from);
}

/// "stages_min", and of which plans where not of all.
std::string title_of(const Formula& formula) {
    return formula.when.empty() ? std::string(formula.quantity) : fmt::format("{} ({})", formula.quantity, formula.when);
}

std::string blank_with_unit(std::string_view text, std::string_view unit) {
    return unit.empty() || unit == "1" ? std::string(text) : fmt::format("{} {}", text, unit);
}

/// The machine's numbers that a page takes, each once, in the order in which they are met.
TextTable numbers_of(const FormulaPage& page, std::string_view blank, const MeasuredBy& measured_by) {
    TextTable table{.columns = {{"number", Table::Align::left}, {"value", Table::Align::left}, {"unit", Table::Align::left, 2},
                                {"meaning", Table::Align::left, 3}, {"`machine probe`", Table::Align::left, 1}},
                    .rows = {}};
    std::vector<std::string> met;
    for (const FormulaSection& section : page.sections)
        for (const Formula* formula : section.formulas)
            for (const Symbol& symbol : formula->symbols())
                for (const std::string& name : keys_of(symbol)) {
                    if (std::ranges::find(met, name) != met.end()) continue;
                    met.push_back(name);
                    const Key& key = machine_key(name);
                    const std::string probe = measured_by(name);
                    table.rows.push_back({name, std::string(blank), std::string(key.units), std::string(key.meaning),
                                          probe.empty() ? "datasheet, driver or fit" : probe});
                }
    return table;
}

constexpr std::string_view numbers_title = "Numbers of the machine";
constexpr std::string_view numbers_meaning =
    "`rooftile machine show` has those of a shipped machine, `rooftile machine probe` measures those with a probe's name on the GPU at "
    "hand. "
    "What is unknown does not bind: leave it open, and what needs it.";

std::string formula_text(const Formula& formula, int number, const Terminal& terminal) {
    std::string out = fmt::format("\n{:>3}. {} = "
        "{}\n", number, terminal.paint(formula.quantity, Tone::strong), blank_with_unit(blank, formula.unit));
    if (!formula.when.empty()) out += "     of: " + wrapped(formula.when, terminal.prose() - 9, 9) + "\n";
    out += "     " + wrapped(formula.text, terminal.prose() - 7, 7) + "\n";
    std::vector<Entry> inputs;
    for (const Symbol& symbol : formula.symbols())
        inputs.push_back({std::string(symbol.name), blank_with_unit(blank, unit_of(symbol)), from_of(symbol)});
    return out + entries_text(inputs, 7, terminal);
}

std::string formula_markdown(const Formula& formula, int number) {
    std::string out = fmt::format("\n### {}. {} = "
        "{}\n\n`{}`\n", number, markdown_cell(title_of(formula)), blank_with_unit("\\_\\_\\_\\_", formula.unit),
                                  formula.text);
    if (formula.symbols().empty()) return out;
    TextTable table{.columns = {{"symbol", Table::Align::left}, {"value", Table::Align::left}, {"unit", Table::Align::left},
        {"from", Table::Align::left}},
                    .rows = {}};
    for (const Symbol& symbol : formula.symbols()) table.rows.push_back({std::string(symbol.name), "", unit_of(symbol), from_of(symbol)});
    return out + "\n" + markdown_table(table);
}

}  // namespace

std::string formulas_text(std::span<const FormulaPage> pages, const MeasuredBy& measured_by, const Terminal& terminal) {
    std::string out;
    for (const FormulaPage& page : pages) {
        if (!out.empty()) out += "\n\n";
        out += terminal.paint(page.title, Tone::strong) + "\n\n" + wrapped(page.intro, terminal.prose(), 0) + "\n";
        int number = 0;
        for (const FormulaSection& section : page.sections) {
            out += "\n" + terminal.paint(section.title, Tone::strong) + "\n";
            for (const Formula* formula : section.formulas) out += formula_text(*formula, ++number, terminal);
        }
        const TextTable numbers = numbers_of(page, blank, measured_by);
        if (numbers.rows.empty()) continue;
        out += "\n" + terminal.paint(numbers_title, Tone::strong) + "\n\n" + wrapped(numbers_meaning, terminal.prose(), 0) + "\n\n";
        out += text_table(numbers, terminal);
    }
    return out;
}

std::string formulas_markdown(std::span<const FormulaPage> pages, const MeasuredBy& measured_by) {
    std::string out;
    for (const FormulaPage& page : pages) {
        if (!out.empty()) out += "\n";
        out += fmt::format("# {}\n\n{}\n", page.title, page.intro);
        int number = 0;
        for (const FormulaSection& section : page.sections) {
            out += fmt::format("\n## {}\n", section.title);
            for (const Formula* formula : section.formulas) out += formula_markdown(*formula, ++number);
        }
        const TextTable numbers = numbers_of(page, "", measured_by);
        if (!numbers.rows.empty()) out += fmt::format("\n## {}\n\n{}\n\n{}", numbers_title, numbers_meaning, markdown_table(numbers));
    }
    return out;
}

}  // namespace rooftile
