// What a formula says, worked out: a small evaluator of the expressions that derivations print.
#pragma once

#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

/// The value of a symbol; NaN where it is unknown, empty where there is none of that name.
using ValueOf = std::function<std::optional<double>(std::string_view)>;

/// Of a text such as "T = ceil(F / rate), so far   [M5]" the expression behind "NAME = ": up to a comma, colon or semicolon outside
/// brackets, to two blanks or the end.
class FormulaValue {
  public:
    /// Empty where the text is no expression of symbols that `value_of` knows: a rule in words.
    static std::optional<double> of(std::string_view text, const ValueOf& value_of) {
        FormulaValue formula(without_name(text), value_of);
        const double value = formula.sum();
        formula.blanks();
        if (formula.failed_ || formula.symbols_ == 0 || !formula.at_end()) return std::nullopt;
        return value;
    }
    /// "T" of "T = ceil(F / rate)"; empty where it has none.
    static std::string_view name_of(std::string_view text) {
        const std::size_t end = text.find(" = ");
        if (end == text.npos) return {};
        for (const char c : text.substr(0, end))
            if (!symbol_sign(c)) return {};
        return text.substr(0, end);
    }

  private:
    FormulaValue(std::string_view text, const ValueOf& value_of) : text_(text), value_of_(value_of) {}

    static bool symbol_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
    static std::string_view without_name(std::string_view text) {
        const std::string_view name = name_of(text);
        return name.empty() ? text : text.substr(name.size() + 3);
    }
    bool at_end() const {
        if (at_ >= text_.size()) return true;
        const char c = text_[at_];
        return c == ',' || c == ':' || c == ';' || c == '[';
    }
    void blanks() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    }
    bool take(char c) {
        blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    double sum() {
        double value = product();
        for (;;)
            if (take('+')) value += product();
            else if (take('-')) value -= product();
            else return value;
    }
    double product() {
        double value = factor();
        for (;;)
            if (take('*')) value *= factor();
            else if (take('/')) value /= factor();
            else return value;
    }
    double factor() {
        if (take('(')) {
            const double value = sum();
            failed_ |= !take(')');
            return value;
        }
        blanks();
        const std::size_t begin = at_;
        while (at_ < text_.size() && symbol_sign(text_[at_])) ++at_;
        const std::string_view word = text_.substr(begin, at_ - begin);
        if (word.empty()) return fail();
        if (std::isdigit(static_cast<unsigned char>(word.front()))) {
            double value = 0;
            const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
            return error == std::errc() && end == word.data() + word.size() ? value : fail();
        }
        if (at_ < text_.size() && text_[at_] == '(') return call(word);
        const std::optional<double> value = value_of_(word);
        ++symbols_;
        return value ? *value : fail();
    }
    double call(std::string_view function) {
        take('(');
        std::vector<double> values{sum()};
        while (take(',')) values.push_back(sum());
        failed_ |= !take(')');
        // An unknown number binds nothing.
        if (function == "min" || function == "max") {
            double value = values.front();
            for (const double other : values) value = function == "min" ? min_known(value, other) : max_known(value, other);
            return value;
        }
        // What is whole but for its last bits is whole.
        if (function == "ceil") return std::ceil(values.front() - 1e-9 * std::abs(values.front()));
        if (function == "floor") return std::floor(values.front() + 1e-9 * std::abs(values.front()));
        return fail();
    }
    double fail() {
        failed_ = true;
        return std::nan("");
    }

    std::string_view text_;
    const ValueOf& value_of_;
    std::size_t at_ = 0;
    int symbols_ = 0;
    bool failed_ = false;
};

}  // namespace rooftile
