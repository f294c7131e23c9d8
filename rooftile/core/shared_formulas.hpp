// Formulas that derivations of several operations have.
#pragma once

#include "rooftile/core/formula.hpp"

namespace rooftile::shared_formula {

inline constexpr Formula intensity_critical{
    "intensity_critical", "", "FLOP/B", "I_crit = peak / bandwidth   [M2]",
    {{machine_number("peak", "peak.*.*.*"), machine_number("bandwidth", "dram.sustained_read dram.bandwidth")}}};

}  // namespace rooftile::shared_formula
