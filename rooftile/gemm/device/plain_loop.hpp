// What an emitted program says of a product beside its kernel: a plain loop, and how a plan lies in shared memory and registers.
#pragma once

#include <optional>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

/// Empty where there is none: pairs of columns, and an expression over a batch or over groups.
std::optional<PlainLoop> gemm_plain_loop(const GemmProblem& problem);
std::vector<std::string> gemm_story(const GemmPlan& plan);

}  // namespace rooftile
