// What a request for attention may say, and what it comes to.
#pragma once

#include <span>

#include "rooftile/attention/plan.hpp"
#include "rooftile/core/field.hpp"
#include "rooftile/core/value.hpp"

namespace rooftile {

std::span<const Field> attention_fields();

/// Throw RequestError.
AttentionProblem attention_problem(const Given& given);
/// Operation::with_work().
Given attention_with_work(const Given& given, std::int64_t size);
AttentionRequest attention_request(const Given& given, int default_top);

/// The request that gives `problem`.
Given attention_given(const AttentionProblem& problem);
/// The same of its record.
Given attention_given(const Record& record);
/// The request that fixes plans to the configuration of a record.
Given attention_given_of_config(const Record& config);
/// What tensors Q, K and V say of a problem. Throws RequestError.
void add_attention_tensors(Given& given, std::span<const TensorInfo> inputs);

}  // namespace rooftile
