// A toy matrix operation: C[i, :] = A[rows[i], :] B^T, where the list of rows is read on the device and A is of fp32, which becomes bf16 on its
// way to the main loop. docs/adding-an-operation.md walks through it.
#pragma once

#include "rooftile/core/operation.hpp"
#include "tests/toy/gather_config.hpp"

namespace rooftile {

class CompiledKernel;

struct GatherPlan {
    std::int64_t m = 0, source_rows = 0, n = 0, k = 0;  ///< rows of C and of A, columns of C, and what is summed over
    MatrixConfig config{};                              ///< a problem has none yet
    std::optional<double> time_us{};
};

const Operation& toy_gather();
/// Throws as DeviceOperation::compile().
CompiledKernel compile_gather(const Plan& plan);

}  // namespace rooftile
