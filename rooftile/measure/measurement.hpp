// A measured kernel: how long it took, how sure we are, and that its result was right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/plan/plan.hpp"

namespace rooftile {

/// The state of the GPU while timing; docs/command-line.md defines them.
enum class Mode : std::uint8_t {
    cold,       ///< L2 overwritten before each launch, outside the timed region
    sustained,  ///< back-to-back launches over rotated buffers after >= 2 s of load
    burst,      ///< the same from an idle GPU, first 50 ms
};
std::string_view name_of(Mode mode);

/// The comparison of a result with its fp64 reference, over the whole of C.
struct Verification {
    bool exact = false;    ///< the small-integer case was equal bit for bit
    bool random = false;   ///< every random element was within its bound
    bool special = false;  ///< NaN, Inf and overflow came out where they must, and nowhere else
    double max_error = 0;  ///< largest |error| / bound; 1 is the limit
    double bound = 0;      ///< the bound at that element, in C's units
    std::string failure;   ///< where not right: which element, got, expected, bound
    bool ok() const { return exact && random && special; }
};

/// The vendor's library on the same buffers, in the same run and mode.
struct Baselines {
    std::optional<double> cublaslt_top1_us, cublaslt_best_us, copy_us;
    std::string missing;  ///< why a baseline is absent: "libcublasLt.so.13 not found"
};

struct Measurement {
    GemmPlan plan;
    Mode mode = Mode::sustained;
    double time_us = 0, time_us_low = 0, time_us_high = 0;  ///< median and its 95 % interval
    std::int64_t samples = 0;
    double tflops = 0, gbytes_per_s = 0;
    std::optional<double> roof_fraction;  ///< of the tensor peak at the measured clock
    Verification verified;
    std::optional<double> sm_clock_mhz, power_w;
    Baselines baselines;
    std::string invalid;  ///< why the figure is not a result: "above the measured roof: ..."
    bool built = true;    ///< false where the plan's kernel does not compile as planned
};

/// Seconds each part of a run took, for --timings.
struct Timing {
    std::string part;
    double seconds = 0;
};

}  // namespace rooftile
