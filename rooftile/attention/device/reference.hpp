// What attention's results must be: every element of O, and of the log-sum-exp, against fp64, on inputs made here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/reference_arguments.hpp"
#include "rooftile/attention/problem.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/reference.hpp"

namespace rooftile {

Source attention_reference_source(const AttentionProblem& problem, std::string_view arch);
/// Its speed counts for nothing: where registers spill, of the longest rows or beside an expression of many operators, it is taken all the same.
Compiled compiled_attention_reference(const AttentionProblem& problem, std::string_view arch);

/// One result of `problem` by what the CTAs of the reference recorded, of packed sequences of one.
CaseOutcome judge(std::span<const AttentionRecord> records, const AttentionProblem& problem, VerifyCase which,
                  std::int64_t sequence = 0);

/// `kernels` outlive it.
class AttentionReference final : public Reference {
  public:
    AttentionReference(const MeasureKernels& kernels, const AttentionProblem& problem, const std::string& arch);

    std::span<const VerifyCase> cases() const override;
    int max_results() const override { return verify_max; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override;
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                   std::span<const TensorPointers> results) const override;

  private:
    int ctas() const;
    void fill_cache(Stream stream, TensorPointers tensors) const;
    void spoil_tails(Stream stream, TensorPointers tensors) const;
    void fill_score(Stream stream, std::uint64_t seed, TensorPointers tensors) const;
    void fill_exact(Stream stream, std::uint64_t seed, TensorPointers tensors) const;

    const MeasureKernels& kernels_;
    AttentionProblem problem_;
    Module module_;
    Function judge_, exact_fill_, scale_rows_, spoil_tails_;
    int shared_bytes_ = 0;
    DeviceBuffer records_;
};

/// Where the special case puts what: bits at an element of a tensor's memory.
struct AttentionInjection {
    int tensor;  ///< 0: Q, 1: K, 2: V
    std::int64_t element;
    std::uint16_t bits;
};
std::vector<AttentionInjection> attention_injections(const AttentionProblem& problem, std::uint64_t seed);

}  // namespace rooftile
