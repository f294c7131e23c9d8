// Formulas without numbers, to be filled in by hand: as text and as Markdown.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "rooftile/core/formula.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// What measures a machine's number, in a word; empty: nothing does, its datasheet says it.
using MeasuredBy = std::function<std::string(std::string_view key)>;

/// Each page: the machine's numbers that it takes, with unit, meaning and who supplies them; then its formulas, numbered, a blank in the
/// place of every value.
std::string formulas_text(std::span<const FormulaPage> pages, const MeasuredBy& measured_by, const Terminal& terminal);
std::string formulas_markdown(std::span<const FormulaPage> pages, const MeasuredBy& measured_by);

}  // namespace rooftile
