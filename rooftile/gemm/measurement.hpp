// A measured kernel: how long it took, how sure we are, and that its result was right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/gemm/device/blame.hpp"
#include "rooftile/measure/runoff.hpp"
#include "rooftile/gemm/explanation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/suite.hpp"

namespace rooftile {

/// The state of the GPU while timing; docs/command-line.md defines them.
enum class Mode : std::uint8_t {
    cold,       ///< L2 overwritten before each launch, outside the timed region
    sustained,  ///< back-to-back launches over rotated buffers after >= 2 s of load
    burst,      ///< the same from an idle GPU, first 50 ms
};
std::string_view name_of(Mode mode);

/// Verification::failure of a plan whose kernel does not compile.
inline constexpr std::string_view never_built = "never ran: it does not compile";

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

/// Hardware counters of one launch: means over `launches` launches on rotated operands, L2 cold before the
/// first. Empty where the chip has no such counter. The metrics behind them stand in
/// rooftile/measure/counters.cpp, their keys and units in rooftile/report/counters.cpp.
struct CounterValues {
    std::string chip;           ///< as CUPTI names it: "GH100"
    std::int64_t launches = 0;  ///< counted together
    std::int64_t passes = 0;    ///< times they were run, each for a part of the counters
    /// Over the counted range, with the gaps between launches; the clock is that of counting, not of timing.
    std::optional<double> time_us, sm_clock_mhz, sm_cycles;
    std::optional<double> sm_active_share;  ///< of sm_cycles: an SM held a warp; mean over SMs
    /// Of their peak in the cycles in which the SM held a warp. The data banks serve L1 and shared memory.
    std::optional<double> tensor_active_share, shared_wavefront_share, data_bank_read_share,
        data_bank_write_share;
    std::optional<double> tensor_instructions;  ///< of warps: a wgmma counts four times
    std::optional<double>
        shared_wavefronts;  ///< steps of shared memory's data stage, those of wgmma included
    std::optional<double> shared_bank_conflicts;
    std::optional<double> l2_read_bytes, l2_write_bytes;  ///< what SMs asked of L2
    std::optional<double> l2_hit_rate;                    ///< of what they read; from two passes
    std::optional<double> l2_fabric_bytes;                ///< between the halves of L2
    std::optional<double> sm_read_bytes;                  ///< what arrived in SMs, each copy of a multicast
    /// With the write-back of what the launches left dirty in L2.
    std::optional<double> dram_read_bytes, dram_write_bytes;
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

/// Seconds each part of a run took, for --timings.
struct Timing {
    std::string part;
    double seconds = 0;
};

}  // namespace rooftile
