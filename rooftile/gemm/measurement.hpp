// A measured kernel: how long it took, how sure we are, and that its result was right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/gemm/device/blame.hpp"
#include "rooftile/measure/runoff.hpp"
#include "rooftile/core/measured.hpp"
#include "rooftile/gemm/explanation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/suite.hpp"

namespace rooftile {

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
    /// The best's time over ours in the same round, median of the rounds and its 95 % interval: a clock that
    /// drifts from round to round is in both.
    std::optional<double> cublaslt_ratio, cublaslt_ratio_low, cublaslt_ratio_high;
    std::optional<CounterValues> cublaslt_best_counters;  ///< where counters were asked for
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
    std::optional<CounterValues> counters;  ///< where they were asked for and permitted
    int plans = 1;                          ///< of this problem that were measured together
    /// The first plan's time over this one's in the same round, median: of the rounds, or of the runoff alone
    /// where this plan was in one.
    std::optional<double> rank1_ratio;
    std::optional<Runoff> runoff;            ///< of the fastest in the rounds, where that was not the first
    std::vector<SuiteLayer> layers;          ///< where a suite has the problem
    std::optional<Explanation> explanation;  ///< of the plan, where it was asked for
    std::optional<Blame> blame;              ///< where it was asked for
    std::string invalid;  ///< why the figure is not a result: "above the measured roof: ..."
    bool built = true;    ///< false where the plan's kernel does not compile as planned
    bool ran = true;      ///< false where the GPU refused it: out of memory
};

/// Joules of one launch: mean power times the median time. Empty where the power is unknown, and in the modes
/// whose mean holds idle time or what empties L2.
std::optional<double> measured_joules(const Measurement& measurement);

}  // namespace rooftile
