#include "rooftile/report/explain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// Bytes, cycles and FLOP are whole at the edge, as in the documents.
std::string result_text(const Step& step, const Record& config) {
    // A choice that is no number is said in words, whatever its step counts.
    if (const Value* chosen = find(config, step.quantity)) {
        if (const auto* word = std::get_if<std::string>(&chosen->content())) return word->empty() ? "none" : *word;
        if (const auto* on = std::get_if<bool>(&chosen->content())) return *on ? "on" : "off";
    }
    if (!step.value) return "unknown";
    const bool counted = step.unit == "B" || step.unit == "cycles" || step.unit == "FLOP";
    return with_unit(number_text(counted ? std::round(*step.value) : *step.value), step.unit);
}

/// Long sources, each in words once, below all steps.
class Footnotes {
  public:
    /// What stands for it at its place: itself where it is short, "[3]".
    std::string mark(const std::string& source) {
        constexpr int long_columns = 40;
        if (columns_of(source) <= long_columns) return source;
        const auto found = std::ranges::find(sources_, source);
        const auto place = found - sources_.begin();
        if (found == sources_.end()) sources_.push_back(source);
        return fmt::format("[{}]", place + 1);
    }
    std::string text(const Terminal& terminal) const {
        if (sources_.empty()) return {};
        std::string out = "\n" + terminal.paint("Sources", Tone::strong) + "\n\n";
        for (std::size_t i = 0; i < sources_.size(); ++i) out += entry(fmt::format("{:>5}", fmt::format("[{}]", i + 1)), sources_[i], terminal);
        return out;
    }

  private:
    std::vector<std::string> sources_;
};

std::string step_text(const Step& step, int number, const Record& config, Footnotes& footnotes, const Terminal& terminal) {
    std::string out = fmt::format("\n{:>3}. {} = {}\n", number, terminal.paint(step.quantity, Tone::strong),
                                  terminal.paint(result_text(step, config), step.value ? Tone::strong : Tone::bad));
    if (!step.formula.empty())
        out += "     " + wrapped(displayable(step.formula, terminal.utf8), terminal.prose() - 7, 7) + "\n";
    std::vector<Entry> inputs;
    for (const Input& input : step.inputs)
        inputs.push_back(
            {input.name, input.value ? input_text(*input.value, input.unit) : "unknown", footnotes.mark(input.source)});
    out += entries_text(inputs, 7, terminal);
    if (!step.limit.empty()) {
        const std::string arrow(terminal.sign("→ ", "-> "));
        const int indent = 5 + columns_of(arrow);
        out += "     " + arrow
               + wrapped(displayable(step.limit, terminal.utf8), terminal.prose() - indent, indent) + "\n";
    }
    return out;
}

}  // namespace

std::string rules_text(const Rejected& rejected, const Terminal& terminal) {
    std::string out;
    for (const LeftOutByRule& left : rejected.by_rule)
        out += entry("left out",
                     fmt::format("{} by rule {}: {}", left.count, left.rule->name, left.rule->why), terminal);
    return out;
}

std::string steps_text(const std::vector<Step>& steps, const Record& config, const Terminal& terminal) {
    std::string out;
    int number = 0;
    Footnotes footnotes;
    for (const Step& step : steps) out += step_text(step, ++number, config, footnotes, terminal);
    return out + footnotes.text(terminal);
}

}  // namespace rooftile
