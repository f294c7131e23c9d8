// GEMM as the stations see it, and from its typed plans to theirs.
#pragma once

#include <variant>

#include "rooftile/core/operation.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

const Operation& gemm_operation();

inline constexpr std::string_view cublaslt_soname = "libcublasLt.so.13";

/// What derive() came to, for stations.
PlanSet gemm_plan_set(std::variant<Plans, Infeasible> outcome);

/// A typed plan as every station reads it. The second shares the problem with other plans.
Plan any_plan(GemmPlan plan);
Plan any_plan(GemmPlan plan, const Problem& problem);

}  // namespace rooftile
