// Packed weights made and unpacked on the GPU, for verification and for libraries that multiply whole operands.
#pragma once

#include "kernels/measure/arguments.hpp"
#include "rooftile/gemm/problem.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// Its kernels, of any layout.
Source quantised_reference_source(std::string_view arch);

/// In the context current at construction. Calls are asynchronous on their stream.
class QuantisedReference {
  public:
    explicit QuantisedReference(const GemmProblem& problem);

    /// Random weights, scales and zero points; in the exact case scales that keep sums whole.
    void fill(Stream stream, DevicePointer packed, bool exact, std::uint64_t seed) const;
    /// [n][k] of `type`: fp32 holds every weight. `rounded`: each is first rounded to the activations' type.
    void dequantise(Stream stream, DevicePointer packed, DevicePointer to, Type type, bool rounded = false) const;
    /// As MeasureKernels::verify(), of a B in fp32 that dequantise() made.
    void verify(Stream stream, const VerifyArguments& arguments, bool exact, DevicePointer records, int ctas) const;
    /// As MeasureKernels::bounded_sums().
    void bounded_sums(Stream stream, const VerifyArguments& arguments, bool exact, Bounded* out, int ctas) const;
    std::int64_t dequantised_bytes(Type type) const { return problem_.n * problem_.k * bytes_of(type); }

  private:
    GemmProblem problem_;
    Module module_;
    Function fill_, dequantise_, verify_exact_, verify_bounded_, sums_exact_, sums_bounded_;
    unsigned ctas_;
};

}  // namespace rooftile
