// A formula of a derivation: steps print it with numbers, and it is listed without a machine.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// One input of a formula.
struct Symbol {
    std::string_view name{};  ///< in the formula: "L"
    std::string_view unit{};  ///< empty: none, or that of the key
    /// Where its value is from: a machine's keys, blank-separated, any of which gives it ("dram.latency"); else in words.
    std::string_view from{};
    bool machine = false;  ///< `from` is keys
};

/// The text is an expression of the symbols up to the first comma, colon or semicolon outside brackets, and to two blanks; or it is a
/// rule in words, which names how a choice is made.
struct Formula {
    std::string_view quantity;  ///< "stages_min"
    std::string_view when;      ///< which plans have it: "several CTAs an SM"; empty: all
    std::string_view unit;
    std::string_view text;  ///< "ceil(L / T) + 1   [M5]"
    static constexpr std::size_t most_symbols = 12;
    std::array<Symbol, most_symbols> list{};

    /// Those that are there.
    std::span<const Symbol> symbols() const {
        std::size_t n = 0;
        while (n < list.size() && !list[n].name.empty()) ++n;
        return {list.data(), n};
    }
};

/// A number of the machine as a symbol of its own name, and under a shorter one.
constexpr Symbol machine_number(std::string_view key) { return {key, {}, key, true}; }
constexpr Symbol machine_number(std::string_view name, std::string_view keys) { return {name, {}, keys, true}; }

/// Formulas under a heading, in the order of the derivation.
struct FormulaSection {
    std::string_view title;
    std::vector<const Formula*> formulas;
};

/// Formulas to fill in on one page.
struct FormulaPage {
    std::string_view title, intro;
    std::vector<FormulaSection> sections;
};

/// What a step says whose value the request gives.
inline constexpr std::string_view fixed_by_request = "fixed by the request";

}  // namespace rooftile
