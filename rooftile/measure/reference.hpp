// What an operation's results must be: its inputs, made on the device, and its fp64 reference. The Verifier does the
// rest alike for every operation: guards, poison, launches, who is to blame.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rooftile/measure/verify_case.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Device pointers of a problem's tensors, in the order of Operation::tensors().
using TensorPointers = std::span<void* const>;

class Reference {
  public:
    virtual ~Reference() = default;

    /// The cases that the operation has, in the order in which they are tried.
    virtual std::span<const VerifyCase> cases() const = 0;
    /// Results that judge() takes at once.
    virtual int max_results() const = 0;
    /// Puts the inputs of a case into a stream: the same bits of the same seed, wherever the tensors lie. Writes nothing
    /// between lines of a tensor.
    virtual void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const = 0;
    /// Compares results at every element, behind what is in `stream`; waits for it. They share their inputs, which are as
    /// fill() left them; each has outputs of its own.
    virtual std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                           std::span<const TensorPointers> results) const = 0;
};

}  // namespace rooftile
