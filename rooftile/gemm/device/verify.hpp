// What a GEMM's result must be: every element of C against an fp64 sum, on inputs made here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rooftile/gemm/device/operands.hpp"
#include "rooftile/gemm/device/quantised_reference.hpp"
#include "rooftile/measure/expression_reference.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/tiled/device/unrolled_image.hpp"

namespace rooftile {

/// Anything that puts C = A * B of one problem into a stream.
using GemmLaunch = std::function<void(Stream stream, const void* a, const void* b, void* c)>;

/// One result of `problem` by what the CTAs of the reference recorded.
CaseOutcome judge(std::span<const VerifyRecord> records, const GemmProblem& problem, VerifyCase which);

/// With an epilogue its expression is evaluated in fp64 with bounds that
/// begin at those of the sums. `kernels` outlive it.
class GemmReference final : public Reference {
  public:
    /// `rounded`: of plans that round packed weights to the activations' type (rounds_weights()), which are these weights then; the bounds are
    /// those of any product.
    GemmReference(const MeasureKernels& kernels, const GemmProblem& problem, bool rounded = false);

    std::span<const VerifyCase> cases() const override;
    int max_results() const override { return verify_max; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override;
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                   std::span<const TensorPointers> results) const override;

  private:
    const MeasureKernels& kernels_;
    /// Both operands of an image's product; numbers stand by channels in both, tap by tap.
    void fill_image(Stream stream, Fill fill, std::uint64_t seed, TensorPointers tensors) const;
    /// The same as verify() of an image's rows, some at a time; of one that is B, of the channels of one tap.
    void verify_image(Stream stream, VerifyCase which, TensorPointers inputs, std::span<const void* const> c) const;
    /// Inputs of the epilogue's graph, of one product of a batch or of one group; the sums are not in memory.
    std::vector<const void*> operands_of(TensorPointers tensors, std::int64_t product) const;
    std::vector<CaseOutcome> judge_product(Stream stream, VerifyCase which, std::span<const TensorPointers> results,
                                           std::int64_t product) const;
    /// Rows of each group with its own inputs, or all of them where they share these.
    std::vector<JudgedRows> rows_of_groups(TensorPointers tensors) const;
    std::vector<CaseOutcome> judge_groups(Stream stream, VerifyCase which, std::span<const TensorPointers> results) const;
    /// The sums of `rows` rows from `first` on, of a group each, with their bounds.
    void give_scales(VerifyArguments& of, TensorPointers tensors, std::int64_t row, std::int64_t group) const;
    void sums_of_groups(Stream stream, VerifyCase which, TensorPointers tensors, bool of_ups, std::int64_t first, std::int64_t rows,
                        Bounded* out) const;
    std::vector<CaseOutcome> judge_epilogue(Stream stream, VerifyCase which, std::span<const TensorPointers> results) const;
    GemmProblem problem_;
    bool rounded_;
    DeviceBuffer records_;
    DeviceBuffer offsets_;  ///< of groups, as the tensor of that name is to be
    std::unique_ptr<ExpressionReference> epilogue_;  ///< where there is one
    std::unique_ptr<QuantisedReference> packed_;     ///< of packed weights
    DeviceBuffer weights_;                           ///< these in fp32, which holds each of them
    std::unique_ptr<UnrolledImage> image_;           ///< of the operand that is taken from one
};

/// What is injected in the special case: bits at row/column (i, k) of A or (k, j) of B, of one matrix of a batch.
struct InjectedValue {
    Operand operand;
    std::int64_t row, column;
    std::uint16_t bits;
    std::int64_t matrix = 0;
};
std::vector<InjectedValue> special_values(const GemmProblem& problem, std::uint64_t seed);

/// Element index within the operand's memory of A[row, column] or B[row, column].
std::int64_t offset_of(const GemmProblem& problem, Operand operand, std::int64_t row, std::int64_t column);

}  // namespace rooftile
