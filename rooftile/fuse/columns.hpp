// Comma-separated values of plans and measurements of a fused expression.
#pragma once

#include <span>

#include "rooftile/core/operation.hpp"

namespace rooftile {

std::span<const CsvColumn> fuse_plan_columns();
std::span<const CsvColumn> fuse_measurement_columns();

}  // namespace rooftile
