// How a GEMM's operands lie in memory, what fills them, and how the reference reads them.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/measure/arguments.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

enum class Operand : std::uint8_t { a, b, c };

/// One operand's lines, their width and distance, in elements; one set at `data`.
/// A with K contiguous has M lines of K elements, with M contiguous K lines of M; B alike with N. C has M
/// lines of N.
MatrixView operand_view(const GemmProblem& problem, Operand operand, DevicePointer data);

/// Elements from the first to the last of `view`'s one set, padding between lines included.
std::int64_t span_of(const MatrixView& view);

/// What fills operand `a` or `b` of `problem`: standard normal numbers, or whole numbers so small and so
/// sparse that every partial sum of a result is exact in fp32: k * range^2 < 2^24.
FillArguments fill_arguments(const GemmProblem& problem, Operand operand, const MatrixView& to, Fill fill,
                             std::uint64_t seed);

struct ExactRange {
    int range;              ///< whole numbers of [-range, range]
    std::int64_t sparsity;  ///< at every `sparsity`-th k, 0 elsewhere
};
/// The widest range up to 8 for sums over `k` products.
ExactRange exact_range(std::int64_t k);

/// Strides that put `problem`'s operands, wherever contiguous, to the reference; `c` are up to verify_max
/// results.
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b,
                                 std::span<const void* const> c);
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b, const void* c);

}  // namespace rooftile
