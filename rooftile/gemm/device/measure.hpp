// Typed GEMM plans measured, for C++ programs; rooftile/measure/measure.hpp says what comes back.
#pragma once

#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile {

/// Of the plans of one problem, one at least.
MeasureTask gemm_task(const std::vector<GemmPlan>& plans);

/// Plans of one problem are measured together, each problem's by themselves.
MeasureRun measure(const std::vector<GemmPlan>& plans, const MeasureOptions& options);

}  // namespace rooftile
