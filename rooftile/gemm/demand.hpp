// A planned GEMM as work.
#pragma once

#include "rooftile/core/demand.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// For a plan that derive() made for that machine.
Demand gemm_demand(const Machine& machine, const GemmPlan& plan);

}  // namespace rooftile
