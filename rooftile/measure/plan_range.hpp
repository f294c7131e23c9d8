// core/plan_range.hpp with the code that this build compiles.
#pragma once

#include "rooftile/core/plan_range.hpp"

namespace rooftile {

/// `within`: percent by which a value's plan may be slower than its own best.
Field within_field();
/// As the request's `within` says, else 3 percent. Throws as plan_range().
PlanRange kernels_for_range(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                            const Given& given, const FieldRange& range);

}  // namespace rooftile
