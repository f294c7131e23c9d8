// The form for memory-bound kernels that somebody else writes.
#pragma once

#include <vector>

#include "rooftile/core/formula.hpp"

namespace rooftile {

std::vector<FormulaPage> fuse_forms();

}  // namespace rooftile
