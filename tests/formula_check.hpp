// Formulas and derivations are one: what a derivation prints is listed, what is listed is printed, and an expression gives the value of
// its step.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "rooftile/core/formula.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/keys.hpp"
#include "tests/formula_value.hpp"

namespace rooftile {

inline std::vector<const Formula*> formulas_in(std::span<const FormulaSection> sections) {
    std::vector<const Formula*> all;
    for (const FormulaSection& section : sections) all.insert(all.end(), section.formulas.begin(), section.formulas.end());
    return all;
}

/// "rate.wgmma.bf16.fp32" is of "rate.*.*.*".
inline bool is_of(std::string_view key, std::string_view listed) {
    const KeyMatch match = match_key(key);
    return key == listed || (match.key && match.key->name == listed);
}

inline bool gives(const Symbol& symbol, const Input& input) {
    if (symbol.name == input.name) return symbol.machine || symbol.unit == input.unit;
    std::istringstream keys{std::string(symbol.from)};
    if (symbol.machine)
        for (std::string key; keys >> key;)
            if (is_of(input.name, key)) return true;
    return false;
}

/// The formulas that a step may be of: one, but where the request fixes the value.
inline std::vector<const Formula*> formulas_of(const Step& step, std::span<const Formula* const> all) {
    std::vector<const Formula*> found;
    for (const Formula* formula : all) {
        if (formula->quantity != step.quantity || formula->unit != step.unit) continue;
        if (formula->text != step.formula && step.formula != fixed_by_request) continue;
        const auto listed = [&](const Input& input) {
            return std::ranges::any_of(formula->symbols(), [&](const Symbol& symbol) { return gives(symbol, input); });
        };
        if (std::ranges::all_of(step.inputs, listed)) found.push_back(formula);
    }
    return found;
}

/// In base units; latencies in cycles, which is what formulas count in. NaN unknown, but where the formula says what stands for it.
inline double value_of(const Input& input, std::string_view symbol, const Machine& machine, double clock_hz) {
    if (!input.value) return symbol == "unit" ? 1 : symbol == "added" || symbol == "L_tma" ? 0 : unknown_number;
    const auto found = machine.facts.find(input.name);
    if (found == machine.facts.end()) return *input.value;
    const Fact* fact = &found->second;
    if (fact->dimension == Seconds::dimension) return fact->value * clock_hz;
    const bool per_second = fact->dimension == FlopRate::dimension && fact->per == Per::sm;
    return per_second ? fact->value / clock_hz : fact->value;
}

/// Derivations held against the list of their formulas.
class FormulaCheck {
  public:
    explicit FormulaCheck(std::vector<const Formula*> all) : all_(std::move(all)) {}

    /// Every step is listed, but for `others`; those that are expressions give their value. Numbers per second are of `clock_hz`.
    void steps(const Machine& machine, const std::vector<Step>& steps, double clock_hz, std::span<const std::string_view> others = {}) {
        for (const Step& step : steps) {
            const auto formulas = formulas_of(step, all_);
            if (formulas.empty() && std::ranges::find(others, step.quantity) != others.end()) continue;
            ASSERT_FALSE(formulas.empty()) << step.quantity << " [" << step.unit << "] " << step.formula << shown(step);
            if (step.formula == fixed_by_request) continue;
            ASSERT_EQ(formulas.size(), 1u) << step.quantity;
            met_.insert(formulas.front());
            evaluate(*formulas.front(), step, machine, clock_hz);
        }
    }

    /// All of the list was met, and every expression was compared with its step's value, but for those of `never`.
    void all_were_met(std::span<const std::string_view> never = {}) const {
        for (const Formula* formula : all_) {
            EXPECT_TRUE(met_.contains(formula)) << "no derivation has " << formula->quantity << " (" << formula->when << "): " << formula->text;
            const auto any = [](std::string_view) -> std::optional<double> { return 1.0; };
            const auto listed = [&](std::string_view name) -> std::optional<double> {
                if (std::ranges::any_of(formula->symbols(), [&](const Symbol& symbol) { return symbol.name == name; })) return 1.0;
                return std::nullopt;
            };
            const bool expression = FormulaValue::of(formula->text, listed).has_value();
            const bool spared = std::ranges::find(never, formula->quantity) != never.end();
            EXPECT_TRUE(!expression || spared || worked_out_.contains(formula)) << formula->quantity << " was never worked out";
            // An expression whose symbols are not all listed is a slip.
            const bool divides = formula->text.find(" / ") != formula->text.npos;
            EXPECT_TRUE(expression || !divides || !FormulaValue::of(formula->text, any)) << formula->text << " has an unlisted symbol";
        }
    }

  private:
    static std::string shown(const Step& step) {
        std::string text;
        for (const Input& input : step.inputs) text += fmt::format("; {} [{}]", input.name, input.unit);
        return text;
    }
    void evaluate(const Formula& formula, const Step& step, const Machine& machine, double clock_hz) {
        // T is shown in whole cycles and is not whole: what it may be has two ends.
        double ends[2];
        for (const int less : {0, 1}) {
            const auto value = FormulaValue::of(formula.text, [&](std::string_view name) -> std::optional<double> {
                for (const Symbol& symbol : formula.symbols()) {
                    if (symbol.name != name) continue;
                    for (const Input& input : step.inputs)
                        if (gives(symbol, input)) {
                            const double given = value_of(input, name, machine, clock_hz);
                            const bool rounded = name == "T" && given == std::floor(given);
                            return rounded && less ? given - 1 + 1e-6 : given;
                        }
                    return unknown_number;
                }
                return std::nullopt;
            });
            if (!value) return;
            ends[less] = *value;
        }
        if (!step.value || std::isnan(ends[0])) return;
        worked_out_.insert(&formula);
        const double slack = (step.unit == "cycles" ? 0.5 : 0) + 1e-6 * std::abs(*step.value);  // loads are shown in whole cycles
        EXPECT_GE(*step.value, std::min(ends[0], ends[1]) - slack) << step.quantity << " = " << formula.text << shown(step);
        EXPECT_LE(*step.value, std::max(ends[0], ends[1]) + slack) << step.quantity << " = " << formula.text << shown(step);
    }

    std::vector<const Formula*> all_;
    std::set<const Formula*> met_, worked_out_;
};

}  // namespace rooftile
