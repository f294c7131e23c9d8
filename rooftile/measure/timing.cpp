#include "rooftile/measure/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>

namespace rooftile {

std::optional<double> clock_mhz(std::span<const ClockStamp> before, std::span<const ClockStamp> after) {
    std::vector<double> clocks;
    for (std::size_t sm = 0; sm < std::min(before.size(), after.size()); ++sm) {
        if (before[sm].nanoseconds == 0 || after[sm].nanoseconds <= before[sm].nanoseconds) continue;
        if (after[sm].cycles <= before[sm].cycles) continue;
        const auto cycles = static_cast<double>(after[sm].cycles - before[sm].cycles);
        const auto nanoseconds = static_cast<double>(after[sm].nanoseconds - before[sm].nanoseconds);
        clocks.push_back(1000 * cycles / nanoseconds);
    }
    if (clocks.empty()) return std::nullopt;
    return median(std::move(clocks));
}

std::int64_t recorded_launches(double launch_us, std::int64_t sets, double least_us, double most_us) {
    const double rotation_us = launch_us * static_cast<double>(sets);
    if (rotation_us > most_us)
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(most_us / launch_us));
    return sets * std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(least_us / rotation_us)));
}

namespace {

constexpr double record_least_us = 2000;  ///< a graph lasts this long, so that the gap between two is < 0.1 %
constexpr double drop_factor = 1.05;      ///< slower than the fastest by this after two blocks: left out
constexpr std::size_t rounds_before_drop = 2;

/// Launches over rotating sets, recorded as a graph; one by one where a capture is refused (with
/// ROOFTILE_LAUNCH_BLOCKING every launch waits, which a capture does not allow).
class Sequence {
  public:
    Sequence(Stream stream, const TimedWork& work, std::int64_t sets, std::int64_t launches)
        : work_(&work), sets_(sets), launches_(launches) {
        begin_capture(stream);
        try {
            launch_all(stream);
            graph_ = end_capture(stream);
        } catch (const Error&) {
            try {
                graph_ = end_capture(stream);
            } catch (const Error&) {  // an invalid capture says so again when it ends
            }
            graph_ = Graph();
        }
    }
    std::int64_t launches() const { return launches_; }
    void run(Stream stream) const {
        if (graph_.nodes() > 0) graph_.launch(stream);
        else launch_all(stream);
    }

  private:
    void launch_all(Stream stream) const {
        for (std::int64_t i = 0; i < launches_; ++i) work_->launch(stream, i % sets_);
    }
    const TimedWork* work_;
    std::int64_t sets_, launches_;
    Graph graph_;
};

/// A timed stretch of the stream. Stamps stand outside the events, so that they cost the result nothing.
struct Block {
    std::size_t work = 0;
    std::int64_t launches = 0;
    Event start, stop, done{false};
    std::size_t stamps = 0;  ///< index of its first stamp; the second follows
};

class Timer {
  public:
    Timer(const std::vector<TimedWork>& works, const TimingOptions& options, const MeasureKernels& kernels,
          std::shared_ptr<const Nvml> gpu)
        : works_(works),
          options_(options),
          kernels_(kernels),
          sampler_(std::move(gpu)),
          results_(works.size()),
          samples_(works.size()),
          clocks_(works.size()),
          launch_us_(works.size()),
          stamps_(sizeof(ClockStamp) * stamp_slots * 2 * static_cast<std::size_t>(kernels.sms())) {}

    std::vector<TimedResult> run(std::int64_t l2_bytes) {
        for (std::size_t w = 0; w < works_.size(); ++w) try_out(w);
        if (options_.mode == Mode::cold) run_cold(l2_bytes);
        else run_blocks();
        return finish();
    }

  private:
    /// Blocks whose stamps are kept at once: one that runs, one behind it, and one being read.
    static constexpr std::size_t stamp_slots = 4;

    /// First launches: code is loaded, a competitor that cannot run is found, one launch is roughly timed.
    void try_out(std::size_t w) {
        try {
            works_[w].launch(stream_, 0);
            stream_.synchronize();
            double us = 0;
            for (std::int64_t count = 1; us < 1000 && count <= 4096; count *= 4) {
                Event start, stop;
                start.record(stream_);
                for (std::int64_t i = 0; i < count; ++i) works_[w].launch(stream_, i % options_.sets);
                stop.record(stream_);
                stop.synchronize();
                us = elapsed_us(start, stop);
                launch_us_[w] = us / static_cast<double>(count);
            }
        } catch (const Error& error) {
            if (!works_[w].droppable) throw;
            results_[w].failure = error.what();
        }
    }

    bool competes(std::size_t w) const { return results_[w].failure.empty() && !results_[w].dropped; }

    void check_interrupted() const {
        if (options_.interrupted && options_.interrupted()) {
            throw Error(ExitCode::interrupted, "interrupted while timing");
        }
    }

    DevicePointer stamp_address(std::size_t index) const {
        return stamps_.address() + index * sizeof(ClockStamp) * static_cast<std::size_t>(kernels_.sms());
    }
    std::span<const ClockStamp> stamp_at(std::size_t index) const {
        const auto sms = static_cast<std::size_t>(kernels_.sms());
        return {static_cast<const ClockStamp*>(stamps_.data()) + index * sms, sms};
    }
    void stamp(std::size_t index) {
        std::span<const ClockStamp> old = stamp_at(index);
        std::fill_n(const_cast<ClockStamp*>(old.data()), old.size(), ClockStamp{});
        kernels_.stamp(stream_, stamp_address(index));
    }

    void enqueue(Block& block, double seconds) {
        const Sequence& sequence = *sequences_[block.work];
        const double one_us = launch_us_[block.work] * static_cast<double>(sequence.launches());
        const auto runs =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(seconds * 1e6 / one_us)));
        block.launches = runs * sequence.launches();
        block.stamps = 2 * (block_count_++ % stamp_slots);
        stamp(block.stamps);
        block.start.record(stream_);
        for (std::int64_t i = 0; i < runs; ++i) sequence.run(stream_);
        block.stop.record(stream_);
        stamp(block.stamps + 1);
        block.done.record(stream_);
    }

    void collect(const Block& block) {
        block.done.synchronize();
        const double us = elapsed_us(block.start, block.stop) / static_cast<double>(block.launches);
        samples_[block.work].push_back(us);
        launch_us_[block.work] = us;
        results_[block.work].launches += block.launches;
        if (const auto mhz = clock_mhz(stamp_at(block.stamps), stamp_at(block.stamps + 1))) {
            clocks_[block.work].push_back(*mhz);
        }
    }

    void record_sequences() {
        const bool burst = options_.mode == Mode::burst;
        const double most_us = (burst ? options_.burst_seconds : 1.0) * 1e6;
        for (std::size_t w = 0; w < works_.size(); ++w) {
            sequences_.emplace_back();
            if (!competes(w)) continue;
            const std::int64_t launches =
                recorded_launches(launch_us_[w], options_.sets, burst ? 500 : record_least_us, most_us);
            sequences_[w] = std::make_unique<Sequence>(stream_, works_[w], options_.sets, launches);
            sequences_[w]->run(stream_);  // a graph is uploaded by its first launch
        }
        stream_.synchronize();
    }

    /// Every competitor in turn for `load_seconds`; the host stays a little ahead of the GPU.
    void load() {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.load_seconds);
        std::deque<Event> ahead;
        while (std::chrono::steady_clock::now() < end) {
            check_interrupted();
            for (std::size_t w = 0; w < works_.size(); ++w) {
                if (!competes(w)) continue;
                sequences_[w]->run(stream_);
                ahead.emplace_back(false).record(stream_);
                if (ahead.size() < 3) continue;
                ahead.front().synchronize();
                ahead.pop_front();
            }
        }
    }

    /// After the first rounds: those that may be left out and are clearly slower than the best of their kind.
    void drop_slow() {
        double best = INFINITY;
        for (std::size_t w = 0; w < works_.size(); ++w) {
            if (works_[w].droppable && competes(w)) best = std::min(best, median(samples_[w]));
        }
        bool first = true;  // the heuristic's own first choice is reported by name: it stays
        for (std::size_t w = 0; w < works_.size(); ++w) {
            if (!works_[w].droppable || !competes(w)) continue;
            if (!first && median(samples_[w]) > drop_factor * best) results_[w].dropped = true;
            first = false;
        }
    }

    /// Sustained: the next block is in the stream before this one ends, so the GPU never idles. Burst: it
    /// idles before each.
    void run_blocks() {
        const bool burst = options_.mode == Mode::burst;
        record_sequences();
        if (!burst) load();
        const auto orders =
            interleaved(works_.size(), static_cast<std::size_t>(options_.rounds), options_.seed);
        std::deque<Block> running;
        const auto collect_one = [&] {
            sampler_.attribute(static_cast<int>(running.front().work));
            collect(running.front());
            sampler_.attribute(-1);
            running.pop_front();
        };
        for (std::size_t round = 0; round < orders.size(); ++round) {
            if (round == rounds_before_drop) {
                while (!running.empty() && burst) collect_one();
                drop_slow();
            }
            for (const std::size_t w : orders[round]) {
                if (!competes(w)) continue;
                check_interrupted();
                if (burst) std::this_thread::sleep_for(std::chrono::duration<double>(options_.idle_seconds));
                running.emplace_back().work = w;
                enqueue(running.back(), burst ? options_.burst_seconds : options_.block_seconds);
                while (running.size() > (burst ? 0u : 1u)) collect_one();
            }
        }
        while (!running.empty()) collect_one();
    }

    /// Each launch after a kernel that overwrites L2; that kernel lasts longer than the host needs to put the
    /// launch and its events behind it, so no host time is measured.
    void run_cold(std::int64_t l2_bytes) {
        const std::int64_t bytes = ceil_div(2 * l2_bytes, 16) * 16;
        const DeviceBuffer lines(static_cast<std::size_t>(bytes));
        reset_persisting_l2();
        double round_us = 0;
        for (const double us : launch_us_) round_us += us + 100;  // the flush: some 200 MB at some TB/s
        const double wanted = options_.cold_seconds * 1e6 * static_cast<double>(works_.size()) / round_us;
        const int rounds = std::clamp(static_cast<int>(std::min(wanted, 1e6)), options_.cold_launches_least,
                                      options_.cold_launches_most);
        constexpr int warm_up = 3;
        const auto orders =
            interleaved(works_.size(), static_cast<std::size_t>(rounds + warm_up), options_.seed);
        for (std::size_t round = 0; round < orders.size(); ++round) {
            check_interrupted();
            if (round == warm_up) sampler_.attribute(0);
            run_cold_round(orders[round], static_cast<std::int64_t>(round), lines, round >= warm_up);
        }
        sampler_.attribute(-1);
    }

    void run_cold_round(const std::vector<std::size_t>& order, std::int64_t round, const DeviceBuffer& lines,
                        bool keep) {
        std::vector<Block> blocks;
        stamp(0);
        for (const std::size_t w : order) {
            if (!competes(w)) continue;
            Block& block = blocks.emplace_back();
            block.work = w;
            kernels_.flush(stream_, lines.address(), static_cast<std::int64_t>(lines.bytes()));
            block.start.record(stream_);
            works_[w].launch(stream_, round % options_.sets);
            block.stop.record(stream_);
        }
        stamp(1);
        stream_.synchronize();
        if (!keep) return;
        const auto mhz = clock_mhz(stamp_at(0), stamp_at(1));
        for (const Block& block : blocks) {
            samples_[block.work].push_back(elapsed_us(block.start, block.stop));
            ++results_[block.work].launches;
            if (mhz) clocks_[block.work].push_back(*mhz);
        }
    }

    std::vector<TimedResult> finish() {
        const std::vector<GpuStateMeans> means = sampler_.stop();
        for (std::size_t w = 0; w < works_.size(); ++w) {
            TimedResult& result = results_[w];
            result.time_us = median_interval(samples_[w]);
            const std::size_t slot = options_.mode == Mode::cold ? 0 : w;
            if (slot < means.size()) result.gpu = means[slot];
            if (!clocks_[w].empty()) result.sm_clock_mhz = median(clocks_[w]);
            else result.sm_clock_mhz = result.gpu.sm_clock_mhz;
        }
        return std::move(results_);
    }

    const std::vector<TimedWork>& works_;
    const TimingOptions& options_;
    const MeasureKernels& kernels_;
    StreamOwner stream_;
    GpuSampler sampler_;
    std::vector<TimedResult> results_;
    std::vector<std::vector<double>> samples_, clocks_;
    std::vector<double> launch_us_;
    std::vector<std::unique_ptr<Sequence>> sequences_;
    PinnedBuffer stamps_;
    std::size_t block_count_ = 0;
};

}  // namespace

std::vector<TimedResult> time_works(const std::vector<TimedWork>& works, const TimingOptions& options,
                                    const MeasureKernels& kernels, std::shared_ptr<const Nvml> gpu,
                                    std::int64_t l2_bytes) {
    return Timer(works, options, kernels, std::move(gpu)).run(l2_bytes);
}

}  // namespace rooftile
