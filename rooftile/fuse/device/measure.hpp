// Typed fused plans measured, for C++ programs; rooftile/measure/measure.hpp says what comes back.
#pragma once

#include <vector>

#include "rooftile/fuse/plan.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile {

/// Plans of one problem, measured together. `machine` is what they were planned for, and what their operators one by one
/// are.
MeasureRun measure(const std::vector<FusePlan>& plans, const Machine& machine, MeasureOptions options);

}  // namespace rooftile
