// Two plans compiled to one kernel of both.
#pragma once

#include <cstdint>
#include <memory>

#include "rooftile/core/operation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// Throws RequestError where there is no such kernel.
Source two_gemms_source(const GemmPlan& first, const GemmPlan& second);

/// The same compiled. Tensors: A, B and the first epilogue's operands, B and operands of the second one, and its
/// result.
std::shared_ptr<const Runnable> compiled_two_gemms(const GemmPlan& first, const GemmPlan& second, const RowChunks& chunks,
                                                   const CompileOptions& options);

}  // namespace rooftile
