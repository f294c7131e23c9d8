// A kernel that somebody's library launched, as a problem of an operation and as a plan of its own: the operation's model then says what
// that very kernel should take. A facet of an operation that knows kernels of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rooftile/core/operation.hpp"
#include "rooftile/names/kernel_name.hpp"
#include "rooftile/names/kernel_sizes.hpp"

namespace rooftile {

/// What is known of a launch beside the kernel's name.
struct LaunchedKernel {
    KernelSizes sizes;
    std::int64_t ctas = 0;
    int threads = 0;                ///< of a CTA
    int ctas_per_sm = 1;            ///< that an SM has room for
    std::int64_t shared_bytes = 0;  ///< of a CTA
};

class KnownKernels : public Facet {
  public:
    struct Answer {
        std::optional<Problem> problem;  ///< what the kernel computed, alone
        std::optional<double> seconds;   ///< that this very kernel is predicted to take
        std::string why_not;             ///< where one of the two is unknown
    };
    /// Empty: no kernel of this operation's. Throws RequestError where its problem cannot be had.
    virtual std::optional<Answer> answer(const Machine& machine, const KernelName& name, const LaunchedKernel& launch) const = 0;
};

}  // namespace rooftile
