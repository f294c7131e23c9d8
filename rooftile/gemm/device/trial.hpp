// One GEMM on a readied GPU: fenced operands, cuBLASLt, a copy, kernels without a part. For rooftile/gemm's own sources.
#pragma once

#include <memory>

#include "rooftile/gemm/problem.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

std::unique_ptr<Trial> gemm_trial(const GemmProblem& problem, Bench& bench);

}  // namespace rooftile
