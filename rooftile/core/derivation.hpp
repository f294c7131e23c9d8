// Writing a derivation down: steps in the order a reader needs them, inputs with their sources.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/core/formula.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Collects the steps of one plan.
class Derivation {
  public:
    explicit Derivation(const Machine& machine) : machine_(machine) {}

    /// A machine's number as its file states it; named unknown where it is.
    Input fact(std::string_view key) const;
    /// A number from the problem, the configuration or an earlier step. NaN: unknown.
    static Input given(std::string name, double value, std::string unit, std::string source);

    /// NaN as `value` stands for unknown.
    void add(std::string quantity, std::string formula, std::vector<Input> inputs, double value,
             std::string unit, std::string limit);
    /// The same of a formula that is also listed without numbers.
    void add(const Formula& formula, std::vector<Input> inputs, double value, std::string limit);
    /// The same where the value may be `fixed` by the request.
    void add_chosen(bool fixed, const Formula& formula, std::vector<Input> inputs, double value, std::string limit);
    std::vector<Step> take() { return std::move(steps_); }

  private:
    const Machine& machine_;
    std::vector<Step> steps_;
};

/// A clause for a limit, or what is missing where a number is unknown.
template <class... Args>
std::string unless_unknown(double value, fmt::format_string<Args...> text, Args&&... args) {
    if (std::isnan(value)) return "not checked: a number it needs is unknown";
    return fmt::format(text, std::forward<Args>(args)...);
}

/// Empty for NaN.
std::optional<double> known(double value);
/// Nearest integer; empty for NaN.
std::optional<std::int64_t> known_count(double value);

}  // namespace rooftile
