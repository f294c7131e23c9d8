// How a GEMM's operands lie in memory, what fills them, and how the reference reads them.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/measure/arguments.hpp"
#include "rooftile/gemm/problem.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

enum class Operand : std::uint8_t { a, b, c };

/// One operand's lines, their width and distance, in elements.
/// A with K contiguous has M lines of K elements, with M contiguous K lines of M; B alike with N. C has M
/// lines of N.
MatrixView operand_view(const GemmProblem& problem, Operand operand, DevicePointer data);
/// How far a right result may lie from the fp64 sum.
ErrorModel error_model_of(const GemmProblem& problem);

/// Matrices of that operand in a batch, and elements from one to the next.
struct OperandBatch {
    std::int64_t matrices, stride;
};
OperandBatch batch_of(const GemmProblem& problem, Operand operand);

/// Elements from the first to the last of `view`, padding between lines included.
std::int64_t span_of(const MatrixView& view);

/// What fills operand `a` or `b` of `problem`: standard normal numbers, or whole numbers of which every partial
/// sum of a result is exact in fp32; others in every `matrix` of a batch.
FillArguments fill_arguments(const GemmProblem& problem, Operand operand, const MatrixView& to, Fill fill,
                             std::uint64_t seed, std::int64_t matrix = 0);

/// What fills scales of blocks of A or, `of_b`, of B: numbers as of operands, whole ones of magnitudes up to 2.
FillArguments scale_fill(const ScaleLayout& layout, bool of_b, void* data, Fill fill, std::uint64_t seed);

/// For sums over `k` products of `type`: the sum of their largest magnitudes is below 2^24, so that fp32 holds every
/// partial sum whatever the signs and the order (of 8-bit operands below 2^13, since the matrix units keep 14 bits). `range` is as wide as that allows, up to 8; the wide numbers
/// take what is left, at most every 7th k, and so few that C stays within the type of the result.
ExactNumbers exact_numbers(std::int64_t k, Type type, Type result);

/// Strides that put `problem`'s operands, wherever contiguous, to the reference; `c` are up to verify_max
/// results. Of a batch its product number `product`.
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b,
                                 std::span<const void* const> c, std::int64_t product = 0);
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b, const void* c);
/// The same of one group, whose rows begin at `first_row` of A and C.
VerifyArguments verify_group(const GemmProblem& problem, const void* a, const void* b, std::span<const void* const> c, std::int64_t group,
                             std::int64_t first_row);

}  // namespace rooftile
