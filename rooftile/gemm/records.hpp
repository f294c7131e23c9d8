// What documents say of a GEMM, its configuration, its resources and its prediction.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// Without `op`.
Record problem_record(const GemmProblem& problem);
Record config_record(const GemmConfig& config);
Record resources_record(const Resources& resources);
Record prediction_record(const Prediction& prediction);

}  // namespace rooftile
