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
#include "rooftile/measure/schedule.hpp"
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
    int rounds = 7;           ///< sustained, burst: blocks each; 6 or more give a 95 % interval
    int other_rounds = 0;     ///< the same of Role::other; 0: as many
    double drop_others = 0;   ///< slower by this factor than the fastest of ours: no second block; 0: never
    double load_seconds = 2;  ///< sustained: load before the first block
    double block_seconds = 0.1;  ///< sustained
    /// Sustained: what runs untimed before each block. A power limit is held by a control that forgets the
    /// load before in some 60 ms (H200: 6 % of the clock at the start of a block, docs/facts.md).
    double settle_seconds = 0.05;
    int select_rounds = 2;  ///< sustained: short blocks of each baseline and aside, before the rounds
    double select_seconds = 0.01;
    int fastest_baselines = 2;  ///< that stay after them, beside the first
    /// Times as long as the fastest: what took longer stays only as the first. Well above the scatter of two
    /// short blocks.
    double baselines_within = 1.1;
    double idle_seconds = 0.5;    ///< burst: pause before each block
    double burst_seconds = 0.05;  ///< burst: length of a block
    double cold_seconds = 1;      ///< cold: total time aimed at for each competitor
    int cold_launches_min = 20, cold_launches_max = 300;
    ConfirmationOptions confirmation;   ///< sustained, burst: after the rounds
    std::function<bool()> interrupted;  ///< asked between blocks; true: Error(interrupted)
};

struct TimedResult {
    MedianInterval time_us;         ///< of one launch; samples are blocks, in cold mode launches
    std::vector<RoundTime> rounds;  ///< those samples; empty for what the selection alone timed
    std::vector<RoundTime>
        confirmation;  ///< of the first plan and the fastest, where there was one; not in time_us
    /// From the SMs' own cycle counters over the timed blocks; NVML's where those do not answer.
    std::optional<double> sm_clock_mhz;
    GpuStateMeans gpu;          ///< NVML's, while this competitor ran; in cold mode while any did
    std::int64_t launches = 0;  ///< timed ones
    bool dropped = false;       ///< was clearly slower; fewer samples than the rest, or short blocks alone
    std::string failure;        ///< why it could not be launched; then nothing else means anything
};

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
