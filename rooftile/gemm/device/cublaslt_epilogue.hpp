// An epilogue as cuBLASLt's own can say it: D = activation(alpha A B + beta C + bias), with scales of 8-bit operands.
#pragma once

#include <optional>
#include <string>

#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// Operands are counted as the problem's epilogue has them.
struct CublasLtEpilogue {
    int kind;  ///< of cublasLtEpilogue_t
    float alpha = 1, beta = 0;
    std::optional<std::size_t> bias{}, residual{}, scale_a{}, scale_b{}, scale_d{};
    bool outer_scales = false;  ///< one a row of A and a column of B
    bool other_gelu = false;  ///< the problem's is by erf, and the library has the one by tanh alone
};

/// Of a problem without an epilogue the plain one; empty with the reason in `missing` where the library has none that computes it.
std::optional<CublasLtEpilogue> cublaslt_epilogue(const GemmProblem& problem, std::string& missing);

}  // namespace rooftile
