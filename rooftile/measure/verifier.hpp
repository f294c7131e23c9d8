// Are results right? One protocol for every operation: inputs made here, outputs poisoned, guards around every tensor,
// each launch judged by the operation's fp64 reference, and the one to blame found. A wrong result is a value that says
// where; only a failing GPU throws.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/measure/tensor_memory.hpp"

namespace rooftile {

/// Puts one launch on tensors, in the order of Operation::tensors(), into a stream.
using TensorLaunch = std::function<void(Stream stream, TensorPointers tensors)>;

/// A byte of what outputs hold before a case. Of the special case it makes finite numbers: where NaN is right, NaN must be written,
/// and a kernel that is right only on top of NaN is not.
unsigned char output_poison(VerifyCase which);

/// What a launch did beside computing.
struct LaunchTraces {
    std::uint64_t touched = 0;  ///< bytes written outside its outputs
    bool inputs_changed = false;
};
/// `outcome`, wrong where the launch left traces. `where` names problem, case and seed.
CaseOutcome with_traces(CaseOutcome outcome, const LaunchTraces& traces, const std::string& where);

/// Whether a launch that was wrong beside others stays wrong though it is right alone. It does not where one
/// of the others, alone, changed an input or wrote outside its outputs: then that one is faulty.
struct LaunchEvidence {
    bool together = false, alone = false;  ///< right
    bool disturbs = false;                 ///< alone, it changed an input or wrote outside its outputs
};
std::vector<bool> faulty(const std::vector<LaunchEvidence>& launches);

/// The outcome of one case as part of a verification: its flag, the random case's figures, the first failure.
void absorb(Verification& verification, VerifyCase which, const CaseOutcome& outcome);

/// Owns guarded inputs of one problem, and guarded outputs for each result that is judged beside others. `kernels` and
/// `reference` outlive it.
class Verifier {
  public:
    /// For up to `launches` results at once, as far as `free_bytes` and the reference allow; at least one.
    Verifier(const MeasureKernels& kernels, const Reference& reference, std::vector<TensorInfo> tensors,
             std::size_t launches, std::int64_t free_bytes);

    /// One case: poisons, fills from `seed`, launches each once and judges; waits for the result. What fails beside
    /// others is checked again alone, so that the faulty one is named.
    std::vector<CaseOutcome> check(VerifyCase which, std::uint64_t seed, std::span<const TensorLaunch> launches);
    /// Those of `cases` that the reference has, in its order; each launch stops at the first that is not right.
    std::vector<Verification> verify(std::uint64_t seed, std::span<const TensorLaunch> launches,
                                     std::span<const VerifyCase> cases);

    /// add_fingerprint() of the outputs that a launch left in the case of check(), of verify() in the random one. Empty where
    /// it was not launched there.
    std::optional<std::uint64_t> fingerprint(std::size_t launch) const { return fingerprints_[launch]; }
    /// Tensors of the `result`-th of those that are judged at once, as the last case left them.
    TensorPointers tensors(std::size_t result) const { return pointers_[result]; }
    std::size_t results() const { return pointers_.size(); }

  private:
    std::vector<CaseOutcome> check_together(VerifyCase which, std::uint64_t seed,
                                            std::span<const TensorLaunch> launches, std::vector<LaunchTraces>& traces,
                                            std::span<std::optional<std::uint64_t>> fingerprints);
    void checksum_inputs(DevicePointer to) const;
    void add_fingerprints(std::size_t result, DevicePointer to) const;

    const MeasureKernels& kernels_;
    const Reference& reference_;
    std::vector<TensorInfo> infos_;
    StreamOwner stream_;
    std::vector<GuardedTensor> inputs_;
    std::vector<std::vector<GuardedTensor>> outputs_;  ///< of each result
    std::vector<std::vector<void*>> pointers_;         ///< of each result, all tensors
    DeviceBuffer counters_;
    std::vector<std::optional<std::uint64_t>> fingerprints_;
};

/// What verify() and fingerprint() say of each launch, each judged by its own reference; launches of one reference together.
struct VerifiedLaunches {
    std::vector<Verification> verified;
    std::vector<std::optional<std::uint64_t>> fingerprints;
};
VerifiedLaunches verify_launches(const MeasureKernels& kernels, std::span<const Reference* const> references,
                                 const std::vector<TensorInfo>& tensors, std::span<const TensorLaunch> launches,
                                 std::int64_t free_bytes, std::uint64_t seed, std::span<const VerifyCase> cases);

}  // namespace rooftile
