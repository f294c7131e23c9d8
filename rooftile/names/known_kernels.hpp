// A kernel that somebody's library launched, as a problem of an operation and as a plan of its own: the operation's model then says what
// that very kernel should take. A facet of an operation that knows kernels of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rooftile/core/operation.hpp"
#include "rooftile/names/kernel_name.hpp"

namespace rooftile {

/// Of a product C = A B, as its kernel was told; C's rows are those of a row-major reader.
struct ProductSizes {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    std::int64_t tiles = 0;  ///< pieces of work, a cluster's each, K's parts counted; 0: not told
    friend auto operator<=>(const ProductSizes&, const ProductSizes&) = default;
};

/// What is known of a launch beside the kernel's name.
struct LaunchedKernel {
    ProductSizes sizes;
    std::int64_t ctas = 0;
    int threads = 0;  ///< of a CTA
    int ctas_per_sm = 1;  ///< that an SM has room for
};

class KnownKernels : public Facet {
  public:
    /// What the kernel computed, alone: an epilogue is left out. Empty: nothing of this operation, or a type that it has not.
    virtual std::optional<Problem> problem_of(const KernelName& name, const LaunchedKernel& launch) const = 0;
    /// What that kernel is predicted to take, and why not where that is unknown.
    struct Answer {
        std::optional<double> seconds;
        std::string why_not;
    };
    virtual Answer seconds_of(const Machine& machine, const Problem& problem, const KernelName& name, const LaunchedKernel& launch) const = 0;
};

}  // namespace rooftile
