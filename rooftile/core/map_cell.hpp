// A cell of a map from the search that fixed its two values.
#pragma once

#include "rooftile/core/operation.hpp"

namespace rooftile {

MapCell map_cell(std::int64_t x, std::int64_t y, const PlanSet& plans);

}  // namespace rooftile
