// GEMM's problems and configurations in JSON, for documents that speak of them.
#pragma once

#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

Json problem_json(const GemmProblem& problem);
Json config_json(const GemmConfig& config);

}  // namespace rooftile
