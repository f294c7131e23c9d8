#include "rooftile/measure/timing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>

#include "rooftile/elapsed.hpp"
#include "rooftile/measure/timer.hpp"

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

RoundOptions rounds_of(Mode mode) {
    RoundOptions rounds;
    if (mode == Mode::cold) rounds.least = 20, rounds.most = 300, rounds.seconds = 1;
    if (mode == Mode::burst) rounds.most = 12, rounds.seconds = 30;  // each block waits for the GPU to idle
    return rounds;
}

std::int64_t recorded_launches(double launch_us, std::int64_t sets, double min_us) {
    const double rotation_us = launch_us * static_cast<double>(sets);
    return sets * std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(min_us / rotation_us)));
}

namespace {

constexpr double record_min_us = 2000;  ///< a graph lasts this long, so that the gap between two is < 0.1 %

std::vector<Role> roles_of(const std::vector<TimedWork>& works) {
    std::vector<Role> roles;
    for (const TimedWork& work : works) roles.push_back(work.role);
    return roles;
}

}  // namespace

Sequence::Sequence(Stream stream, const TimedWork& work, std::int64_t sets, std::int64_t launches)
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

void Sequence::run(Stream stream) const {
    if (graph_.nodes() > 0) graph_.launch(stream);
    else launch_all(stream);
}

void Sequence::launch_all(Stream stream) const {
    for (std::int64_t i = 0; i < launches_; ++i) work_->launch(stream, i % sets_);
}

Timer::Timer(const std::vector<TimedWork>& works, const TimingOptions& options, const MeasureKernels& kernels,
             std::shared_ptr<const Nvml> gpu)
    : works_(works),
      options_(options),
      kernels_(kernels),
      sampler_(std::move(gpu)),
      results_(works.size()),
      rounds_(roles_of(works), options.rounds, options.seed),
      clocks_(works.size()),
      launch_us_(works.size()),
      stamps_(sizeof(ClockStamp) * stamp_slots * 2 * static_cast<std::size_t>(kernels.sms())) {}

std::vector<TimedResult> Timer::run(std::int64_t l2_bytes) {
    for (std::size_t w = 0; w < works_.size(); ++w) try_out(w);
    if (options_.mode == Mode::cold) run_cold(l2_bytes);
    else run_blocks();
    return finish();
}

/// First launches: code is loaded, a competitor that cannot run is found, one launch is roughly timed.
void Timer::try_out(std::size_t w) {
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
        if (works_[w].role != Role::baseline) throw;
        results_[w].failure = error.what();
        rounds_.leave_out(w);
    }
}

void Timer::check_interrupted() const {
    if (options_.interrupted && options_.interrupted())
        throw Error(ExitCode::interrupted, "interrupted while timing");
}

std::span<const ClockStamp> Timer::stamp_at(std::size_t index) const {
    const auto sms = static_cast<std::size_t>(kernels_.sms());
    return {static_cast<const ClockStamp*>(stamps_.data()) + index * sms, sms};
}

void Timer::stamp(std::size_t index) {
    std::span<const ClockStamp> old = stamp_at(index);
    std::fill_n(const_cast<ClockStamp*>(old.data()), old.size(), ClockStamp{});
    kernels_.stamp(stream_, stamps_.address() + index * old.size_bytes());
}

void Timer::enqueue(Block& block, double seconds, double lead_seconds) {
    const Sequence& sequence = *sequences_[block.work];
    const TimedWork& work = works_[block.work];
    const double one_us = launch_us_[block.work] * static_cast<double>(sequence.launches());
    const auto runs_in = [&](double s) { return static_cast<std::int64_t>(std::ceil(s * 1e6 / one_us)); };
    const std::int64_t runs = std::max<std::int64_t>(1, runs_in(seconds));
    block.launches = runs * sequence.launches();
    block.stamps = 2 * (block_count_++ % stamp_slots);
    block.has_earlier = runs > 1;
    const SetRange all{0, options_.sets};
    for (std::int64_t i = runs_in(lead_seconds); i > 0; --i) sequence.run(stream_);
    stamp(block.stamps);
    if (block.has_earlier) {
        block.earlier.start.record(stream_);
        for (std::int64_t i = 1; i < runs; ++i) sequence.run(stream_);
        block.earlier.stop.record(stream_);
    }
    if (work.before) work.before(stream_, all);
    block.last.start.record(stream_);
    sequence.run(stream_);
    block.last.stop.record(stream_);
    stamp(block.stamps + 1);
    if (work.after) work.after(stream_, all);
    block.done.record(stream_);
}

void Timer::collect(const Block& block) {
    block.done.synchronize();
    const double all_us = elapsed_us(block.last.start, block.last.stop)
                        + (block.has_earlier ? elapsed_us(block.earlier.start, block.earlier.stop) : 0);
    const double us = all_us / static_cast<double>(block.launches);
    if (block.confirmation) {
        results_[block.work].confirmation.push_back({block.round, us});
        return;
    }
    rounds_.add(block.work, {block.round, us});
    launch_us_[block.work] = us;
    results_[block.work].launches += block.launches;
    if (const auto mhz = clock_mhz(stamp_at(block.stamps), stamp_at(block.stamps + 1)))
        clocks_[block.work].push_back(*mhz);
}

void Timer::record_sequences() {
    const bool burst = options_.mode == Mode::burst;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        sequences_.emplace_back();
        if (!runs(w)) continue;
        check_interrupted();
        const std::int64_t launches =
            recorded_launches(launch_us_[w], options_.sets, burst ? 500 : record_min_us);
        sequences_[w] = std::make_unique<Sequence>(stream_, works_[w], options_.sets, launches);
        sequences_[w]->run(stream_);  // a graph is uploaded by its first launch
    }
    stream_.synchronize();
}

void Timer::keep_busy(std::span<const std::size_t> works, double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::deque<Event> ahead;
    for (std::size_t i = 0; std::chrono::steady_clock::now() < end; i = (i + 1) % works.size()) {
        check_interrupted();
        sequences_[works[i]]->run(stream_);
        ahead.emplace_back(false).record(stream_);
        if (ahead.size() < 3) continue;
        ahead.front().synchronize();
        ahead.pop_front();
    }
}

/// Sustained: the next block is in the stream before this one ends, so the GPU never idles. Burst: it
/// idles before each.
void Timer::run_blocks() {
    const bool burst = options_.mode == Mode::burst;
    record_sequences();
    std::vector<std::size_t> all;
    for (std::size_t w = 0; w < works_.size(); ++w)
        if (runs(w)) all.push_back(w);
    if (!burst && !all.empty()) keep_busy(all, options_.load_seconds);
    sampler_.attribute(any_slot());
    if (burst) {
        run_rounds(options_.rounds.most, options_.burst_seconds, 0);
    } else {
        run_rounds(options_.rounds.least, options_.block_seconds, options_.lead_seconds);
        if (!rounds_.sure()) {
            rounds_.begin_again(options_.settled_most);
            for (std::size_t w = 0; w < works_.size(); ++w)
                if (rounds_.stands(w)) clocks_[w].clear(), results_[w].launches = 0;
            run_rounds(options_.rounds.most, options_.settled_block_seconds, options_.settle_seconds);
        }
    }
    sampler_.attribute(-1);
    keep_rounds();
    if (options_.confirmation.rounds > 0) confirm();
    if (!burst && options_.alone_seconds > 0) run_alone();
}

void Timer::run_rounds(std::size_t most, double block_seconds, double lead_seconds) {
    const bool burst = options_.mode == Mode::burst;
    std::deque<Block> running;
    const auto collect_one = [&] {
        collect(running.front());
        running.pop_front();
    };
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t given = 0; given < most; ++given) {
        const std::vector<std::size_t> order = rounds_.next(seconds_since(start));
        if (order.empty()) break;
        for (const std::size_t w : order) {
            check_interrupted();
            if (burst) std::this_thread::sleep_for(std::chrono::duration<double>(options_.idle_seconds));
            running.emplace_back().work = w;
            running.back().round = rounds_.round();
            enqueue(running.back(), block_seconds, lead_seconds);
            while (running.size() > (burst ? 0u : 1u)) collect_one();
        }
    }
    while (!running.empty()) collect_one();
}

void Timer::run_alone() {
    // The control that holds a power limit forgets the load before in some 60 ms (docs/facts.md).
    constexpr double forgotten_seconds = 0.1;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        if (!is_ours(works_[w].role) || !runs(w) || results_[w].dropped) continue;
        keep_busy(std::array{w}, forgotten_seconds);
        sampler_.attribute(static_cast<int>(w));
        keep_busy(std::array{w}, options_.alone_seconds);
        sampler_.attribute(-1);
    }
    stream_.synchronize();
}

void Timer::keep_rounds() {
    for (std::size_t w = 0; w < works_.size(); ++w) {
        results_[w].rounds = rounds_.times(w);
        results_[w].dropped = rounds_.dropped(w);
    }
}

std::vector<TimedResult> Timer::finish() {
    const std::vector<GpuStateMeans> means = sampler_.stop();
    const auto mean_of = [&](std::size_t slot) { return slot < means.size() ? means[slot] : GpuStateMeans{}; };
    for (std::size_t w = 0; w < works_.size(); ++w) {
        TimedResult& result = results_[w];
        std::vector<double> samples;
        for (const RoundTime& r : result.rounds) samples.push_back(r.us);
        result.time_us = median_interval(std::move(samples));
        result.gpu = mean_of(std::size_t(any_slot()));
        result.gpu.power_w = mean_of(w).power_w;
        if (!clocks_[w].empty()) result.sm_clock_mhz = median(clocks_[w]);
        else result.sm_clock_mhz = result.gpu.sm_clock_mhz;
    }
    return std::move(results_);
}

std::vector<TimedResult> time_works(const std::vector<TimedWork>& works, const TimingOptions& options,
                                    const MeasureKernels& kernels, std::shared_ptr<const Nvml> gpu,
                                    std::int64_t l2_bytes) {
    return Timer(works, options, kernels, std::move(gpu)).run(l2_bytes);
}

}  // namespace rooftile
