// What a chain's results must be: every element of Y against fp64, H rounded as kernels round it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/chain/reference_arguments.hpp"
#include "rooftile/chain/problem.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/reference.hpp"

namespace rooftile {

Source chain_reference_source(std::string_view arch);

/// `kernels` outlive it.
class ChainReference final : public Reference {
  public:
    ChainReference(const MeasureKernels& kernels, const ChainProblem& problem, const std::string& arch);

    /// Whole numbers stay exact through relu alone.
    std::span<const VerifyCase> cases() const override;
    int max_results() const override { return verify_max; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override;
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                   std::span<const TensorPointers> results) const override;

  private:
    void judge_rows(Stream stream, VerifyCase which, std::span<const TensorPointers> results, std::int64_t first, std::int64_t rows) const;
    CaseOutcome outcome_of(std::span<const ChainRecord> records, VerifyCase which) const;

    const MeasureKernels& kernels_;
    ChainProblem problem_;
    std::int64_t rows_ = 0;  ///< that are judged together
    Module module_;
    Function round_, judge_, scale_;
    DeviceBuffer records_, first_sums_, hidden_, slack_, sums_, slack_sums_;
};

}  // namespace rooftile
