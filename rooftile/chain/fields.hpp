// What a request for a chain may give, and what follows from it.
#pragma once

#include <span>

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/field.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

std::span<const Field> chain_fields();
/// Throws RequestError, as the others do.
ChainProblem chain_problem(const Given& given);
/// Operation::with_work().
Given chain_with_work(const Given& given, std::int64_t size);
ChainRequest chain_request(const Given& given, const PlanDefaults& defaults);
Given chain_given(const ChainProblem& problem);
Given chain_given(const Record& record);
Given chain_given_of_config(const Record& config);
/// X, W1 and W2 that lie somewhere.
void add_chain_tensors(Given& given, std::span<const TensorInfo> inputs);

}  // namespace rooftile
