// The formulas of a GEMM's derivation by name; formulas.def is the one list of them.
#pragma once

#include <span>
#include <vector>

#include "rooftile/core/formula.hpp"
#include "rooftile/core/shared_formulas.hpp"

namespace rooftile {

namespace gemm_formula {
#define ROOFTILE_SECTION(TITLE)
#define ROOFTILE_FORMULA(NAME, ...) inline constexpr Formula NAME = __VA_ARGS__;
#include "rooftile/gemm/formulas.def"
#undef ROOFTILE_SECTION
#undef ROOFTILE_FORMULA
}  // namespace gemm_formula

/// All of them, in the order of the derivation.
std::span<const FormulaSection> gemm_formulas();
/// The forms for kernels of this kind that somebody else writes.
std::vector<FormulaPage> gemm_forms();

}  // namespace rooftile
