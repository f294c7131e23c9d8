// What a request for a GEMM may say, and what it comes to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// Which plans are asked for: what is fixed of them, and which stand beside the best.
struct GemmAsk {
    GemmRequest request;
    int sample = 0;  ///< plans drawn from all that pass the constraints, the best included; 0: none are drawn
    std::vector<OrderChoice> orders;  ///< the best plan in these, too
    std::uint64_t seed = 1;           ///< of the sample
};

std::span<const Field> gemm_fields();

/// Checked against what the library accepts. Throw RequestError, one line.
GemmProblem gemm_problem(const Given& given);
/// Operation::with_work().
Given gemm_with_work(const Given& given, std::int64_t size);
/// The request that gives `problem`.
Given gemm_given(const GemmProblem& problem);
/// The same of its record.
Given gemm_given(const Record& record);
GemmRequest gemm_request(const Given& given, int default_top);
GemmAsk gemm_ask(const Given& given, int default_top);

}  // namespace rooftile
