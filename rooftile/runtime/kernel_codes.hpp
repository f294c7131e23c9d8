// Machine code of plans that launch more than one kernel.
#pragma once

#include <vector>

#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// What a Runnable of several kernels is besides: its code() is the first one's.
class SeveralKernels {
  public:
    virtual ~SeveralKernels() = default;
    /// Of each launch, in their order.
    virtual std::vector<KernelCode> codes() const = 0;
};

/// Of each launch of a compiled plan, in their order.
inline std::vector<KernelCode> codes_of(const CompiledKernel& kernel) {
    if (const auto* several = dynamic_cast<const SeveralKernels*>(&kernel.runnable())) return several->codes();
    return {kernel.code()};
}

}  // namespace rooftile
