// Timing of anything that can be launched, in the three modes: what is compared is interleaved.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/measure/confirmation.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/nvml.hpp"
#include "rooftile/measure/rounds.hpp"
#include "rooftile/measure/statistics.hpp"

namespace rooftile {

/// One competitor: puts one launch on buffer set `set` into a stream, without waiting. What cannot be
/// launched is a fault, but for a baseline.
struct TimedWork {
    std::string name;
    std::function<void(Stream stream, std::int64_t set)> launch;
    Role role = Role::leader;
    /// Put into the stream around timed launches, one at least on each of `sets`, and itself untimed: in blocks around
    /// the last sequence, which goes over all sets; in cold mode around every launch. May be empty.
    std::function<void(Stream stream, SetRange sets)> before = {}, after = {};
};

struct TimingOptions {
    Mode mode = Mode::sustained;
    std::int64_t sets = 1;    ///< buffer sets that launches rotate over
    std::uint64_t seed = 0;   ///< of the order of competitors
    RoundOptions rounds;      ///< of blocks; in cold mode of launches
    double load_seconds = 2;  ///< sustained: load before the first block
    /// Sustained: at least so long, and every set once; the same work before each, untimed. In short blocks all share one clock.
    double block_seconds = 0.005, lead_seconds = 0.002;
    /// Sustained: the same where the least rounds of short blocks scatter. That is where a power limit holds the clock and each
    /// takes over what the one before left: its control forgets in some 60 ms (docs/facts.md), and what takes more power must pay
    /// for it by its own clock. Only these blocks then count.
    double settled_block_seconds = 0.012, settle_seconds = 0.04;
    std::size_t settled_most = 3;  ///< of each kind that were the fastest in the short blocks
    double alone_seconds = 0.3;   ///< sustained: our plans once more, each by itself, for their power; 0: not
    double idle_seconds = 0.5;    ///< burst: pause before each block
    double burst_seconds = 0.05;  ///< burst: length of a block
    ConfirmationOptions confirmation;   ///< sustained, burst: after the rounds
    std::function<bool()> interrupted;  ///< asked between blocks; true: Error(interrupted)
};

struct TimedResult {
    MedianInterval time_us;         ///< of one launch; samples are blocks, in cold mode launches
    std::vector<RoundTime> rounds;  ///< those samples
    std::vector<RoundTime>
        confirmation;  ///< of the first plan and the fastest, where there was one; not in time_us
    /// From the SMs' own cycle counters over the timed blocks; NVML's where those do not answer.
    std::optional<double> sm_clock_mhz;
    /// NVML's. Power of this competitor by itself, where `alone_seconds` were asked for; the rest while any ran, since NVML
    /// reads more slowly than competitors alternate.
    GpuStateMeans gpu;
    std::int64_t launches = 0;  ///< timed ones
    bool dropped = false;       ///< was clearly slower than the fastest of its kind; fewer samples than the rest
    std::string failure;        ///< why it could not be launched; then nothing else means anything
};

/// How many launches, in what time: what the rounds of `mode` end by.
RoundOptions rounds_of(Mode mode);

/// Times all of `works` on the device of the current context. `gpu` may be null.
/// Throws Error(gpu_failed), Error(interrupted).
std::vector<TimedResult> time_works(const std::vector<TimedWork>& works, const TimingOptions& options,
                                    const MeasureKernels& kernels, std::shared_ptr<const Nvml> gpu,
                                    std::int64_t l2_bytes);

/// The median over SMs of cycles per time between two stamps, MHz; empty where no SM answered both.
std::optional<double> clock_mhz(std::span<const ClockStamp> before, std::span<const ClockStamp> after);

/// Launches recorded together so that the host adds nothing between them: a multiple of `sets`, lasting at
/// least `min_us`.
std::int64_t recorded_launches(double launch_us, std::int64_t sets, double min_us);

}  // namespace rooftile
