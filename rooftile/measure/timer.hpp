// One call of time_works(): what its modes share. For rooftile/measure's own sources.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rooftile/measure/timing.hpp"

namespace rooftile {

/// Launches over rotating sets, recorded as a graph; one by one where a capture is refused (with
/// ROOFTILE_LAUNCH_BLOCKING every launch waits, which a capture does not allow).
class Sequence {
  public:
    Sequence(Stream stream, const TimedWork& work, std::int64_t sets, std::int64_t launches);
    std::int64_t launches() const { return launches_; }
    void run(Stream stream) const;

  private:
    void launch_all(Stream stream) const;
    const TimedWork* work_;
    std::int64_t sets_, launches_;
    Graph graph_;
};

/// A timed stretch of the stream, in two parts: `last` is its last sequence, before and after which the stream holds what
/// is not timed. Stamps stand outside the events, so that they cost the result nothing.
struct Block {
    struct Stretch {
        Event start, stop;
    };
    std::size_t work = 0, round = 0;
    std::int64_t launches = 0;
    Stretch earlier, last;
    bool has_earlier = false;  ///< false where one sequence fills the block
    Event done{false};
    std::size_t stamps = 0;  ///< index of its first stamp; the second follows
    bool confirmation = false;  ///< its time is for TimedResult::confirmation alone
};

class Timer {
  public:
    Timer(const std::vector<TimedWork>& works, const TimingOptions& options, const MeasureKernels& kernels,
          std::shared_ptr<const Nvml> gpu);
    std::vector<TimedResult> run(std::int64_t l2_bytes);

  private:
    /// Blocks whose stamps are kept at once: one that runs, one behind it, and one being read.
    static constexpr std::size_t stamp_slots = 4;

    void try_out(std::size_t work);
    bool runs(std::size_t w) const { return results_[w].failure.empty(); }
    /// Samples of the rounds into the results.
    void keep_rounds();
    void check_interrupted() const;
    int any_slot() const { return static_cast<int>(works_.size()); }  ///< of the sampler: while any runs
    std::span<const ClockStamp> stamp_at(std::size_t index) const;
    void stamp(std::size_t index);

    // timing.cpp: blocks, sustained and burst
    void record_sequences();
    /// `works` in turn for so long; the host stays a little ahead of the GPU.
    void keep_busy(std::span<const std::size_t> works, double seconds);
    void run_blocks();
    /// At most so many rounds.
    void run_rounds(std::size_t most, double block_seconds, double lead_seconds);
    /// Our plans, each by itself: what power it takes.
    void run_alone();
    /// Puts a block of at least `seconds` into the stream, behind untimed work of about `lead_seconds`.
    void enqueue(Block& block, double seconds, double lead_seconds);
    void collect(const Block& block);

    // timing_confirmation.cpp: after the rounds; ConfirmationOptions says when
    void confirm();

    // timing_cold.cpp
    void run_cold(std::int64_t l2_bytes);
    void run_cold_round(const std::vector<std::size_t>& order, std::size_t round, const DeviceBuffer& lines,
                        bool keep);

    std::vector<TimedResult> finish();

    const std::vector<TimedWork>& works_;
    const TimingOptions& options_;
    const MeasureKernels& kernels_;
    StreamOwner stream_;
    GpuSampler sampler_;
    std::vector<TimedResult> results_;
    Rounds rounds_;
    std::vector<std::vector<double>> clocks_;
    std::vector<double> launch_us_;
    std::vector<std::unique_ptr<Sequence>> sequences_;
    PinnedBuffer stamps_;
    std::size_t block_count_ = 0;
};

}  // namespace rooftile
