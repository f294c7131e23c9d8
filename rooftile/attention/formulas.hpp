// The formulas of an attention kernel's derivation by name; formulas.def is the one list of them.
#pragma once

#include <span>
#include <vector>

#include "rooftile/core/formula.hpp"

namespace rooftile {

namespace attention_formula {
#define ROOFTILE_SECTION(TITLE)
#define ROOFTILE_FORMULA(NAME, ...) inline constexpr Formula NAME = __VA_ARGS__;
#include "rooftile/attention/formulas.def"
#undef ROOFTILE_SECTION
#undef ROOFTILE_FORMULA
}  // namespace attention_formula

/// All of them, in the order of the derivation.
std::span<const FormulaSection> attention_formulas();
/// The forms for kernels of this kind that somebody else writes.
std::vector<FormulaPage> attention_forms();

}  // namespace rooftile
