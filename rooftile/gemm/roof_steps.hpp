// From the datasheet's roof to a GEMM's predicted time, with what each step came from.
#pragma once

#include <vector>

#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// For a plan that derive() made for that machine; empty where its time is unknown.
std::vector<RoofStep> gemm_roof_steps(const Machine& machine, const GemmPlan& plan);

}  // namespace rooftile
