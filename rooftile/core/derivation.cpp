#include "rooftile/core/derivation.hpp"

#include <charconv>
#include <cmath>
#include <mutex>

#include "rooftile/machine/units_text.hpp"

namespace rooftile {

Input Derivation::fact(std::string_view key) const {
    const Fact* fact = machine_.find(key);
    if (!fact) return {std::string(key), std::nullopt, "", "unknown on " + machine_.id};
    const NumberParts parts = parts_of(fact->text);
    double value = 0;
    std::from_chars(parts.number.data(), parts.number.data() + parts.number.size(), value);
    return {std::string(key), value, std::string(parts.unit), fact->source};
}

Input Derivation::given(std::string name, double value, std::string unit, std::string source) {
    return {std::move(name), known(value), std::move(unit), std::move(source)};
}

void Derivation::add(std::string quantity, std::string formula, std::vector<Input> inputs, double value,
                     std::string unit, std::string limit) {
    steps_.push_back({std::move(quantity), std::move(formula), std::move(inputs), known(value),
                      std::move(unit), std::move(limit)});
}

void Derivation::add(const Formula& formula, std::vector<Input> inputs, double value, std::string limit) {
    add_chosen(false, formula, std::move(inputs), value, std::move(limit));
}

void Derivation::add_chosen(bool fixed, const Formula& formula, std::vector<Input> inputs, double value, std::string limit) {
    add(std::string(formula.quantity), std::string(fixed ? fixed_by_request : formula.text), std::move(inputs), value,
        std::string(formula.unit), std::move(limit));
}

List input_list(const std::vector<Input>& inputs) {
    List out;
    for (const Input& input : inputs)
        out.push_back(Record{
            {"name", input.name}, {"value", input.value}, {"unit", input.unit}, {"source", input.source}});
    return out;
}

struct Steps::Text {
    std::once_flag once;
    Writer writer;
    std::vector<Step> steps;
};

Steps::Steps(std::vector<Step> steps) : Steps([steps = std::move(steps)] { return steps; }) {}
Steps::Steps(Writer writer) : text_(std::make_shared<Text>()) { text_->writer = std::move(writer); }

const std::vector<Step>& Steps::all() const {
    static const std::vector<Step> none;
    if (!text_) return none;
    std::call_once(text_->once, [this] {
        text_->steps = text_->writer();
        text_->writer = nullptr;  // and with it what the steps were written from
    });
    return text_->steps;
}

std::optional<double> known(double value) {
    if (std::isfinite(value)) return value;
    return std::nullopt;
}

std::optional<std::int64_t> known_count(double value) {
    if (std::isfinite(value)) return std::llround(value);
    return std::nullopt;
}

std::string_view name_of(Reason reason) {
    switch (reason) {
        case Reason::registers:
            return "registers";
        case Reason::shared:
            return "shared";
        case Reason::threads:
            return "threads";
        case Reason::instruction:
            return "instruction";
        case Reason::alignment:
            return "alignment";
        case Reason::cluster:
            return "cluster";
        case Reason::latency:
            return "latency";
        case Reason::rule:
            return "rule";
        case Reason::dominated:
            return "dominated";
    }
    return "?";
}

void Rejected::add(const Rule& rule, std::int64_t count) {
    if (count == 0) return;
    add(Reason::rule, count);
    for (LeftOutByRule& left : by_rule)
        if (left.rule == &rule) {
            left.count += count;
            return;
        }
    by_rule.push_back({&rule, count});
}

void Rejected::add(const Rejected& other) {
    for (int r = 0; r < reason_count; ++r)
        if (r != int(Reason::rule)) reasons[std::size_t(r)] += other.reasons[std::size_t(r)];
    for (const LeftOutByRule& left : other.by_rule) add(*left.rule, left.count);
}

}  // namespace rooftile
