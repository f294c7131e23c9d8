// What documents and tables show of attention.
#pragma once

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/value.hpp"

namespace rooftile {

Record problem_record(const AttentionProblem& problem);
Record config_record(const AttentionPlan& plan);
Record resources_record(const AttentionResources& resources);
Record prediction_record(const AttentionPrediction& prediction);

}  // namespace rooftile
