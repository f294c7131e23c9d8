// Comma-separated values of plans and measurements of a GEMM.
#pragma once

#include <span>

#include "rooftile/core/operation.hpp"

namespace rooftile {

std::span<const CsvColumn> gemm_plan_columns();
std::span<const CsvColumn> gemm_measurement_columns();

}  // namespace rooftile
