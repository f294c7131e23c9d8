// What measurements of every operation have in common, as values: how they were taken, counted and timed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooftile {

/// The state of the GPU while timing; docs/command-line.md defines them.
enum class Mode : std::uint8_t {
    cold,       ///< L2 overwritten before each launch, outside the timed region
    sustained,  ///< back-to-back launches over rotated buffers after >= 2 s of load
    burst,      ///< the same from an idle GPU, first 50 ms
};
std::string_view name_of(Mode mode);

/// `verified.failure` of a plan whose kernel does not compile.
inline constexpr std::string_view never_built = "never ran: it does not compile";

/// Where a problem comes from. Models have layers; other suites, groups of problems.
struct SuiteLayer {
    std::string model, layer;
    friend bool operator==(const SuiteLayer&, const SuiteLayer&) = default;
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

/// Seconds each part of a run took, for --timings.
struct Timing {
    std::string part;
    double seconds = 0;
};

/// What a document says of the GPU of a run, as report's GpuContext wants it.
struct RunningGpu {
    std::string gpu, driver, nvrtc;
};

}  // namespace rooftile
