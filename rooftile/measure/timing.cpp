#include "rooftile/measure/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>

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

std::int64_t recorded_launches(double launch_us, std::int64_t sets, double min_us) {
    const double rotation_us = launch_us * static_cast<double>(sets);
    return sets * std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(min_us / rotation_us)));
}

namespace {

constexpr double record_min_us = 2000;  ///< a graph lasts this long, so that the gap between two is < 0.1 %
constexpr double drop_factor = 1.05;  ///< burst: a baseline slower than the fastest by this after two blocks
constexpr std::size_t rounds_before_drop = 2;

bool is_ours(Role role) { return role == Role::leader || role == Role::other; }

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
    }
}

void Timer::check_interrupted() const {
    if (options_.interrupted && options_.interrupted())
        throw Error(ExitCode::interrupted, "interrupted while timing");
}

double Timer::median_of(std::size_t w) const {
    std::vector<double> samples;
    for (const RoundTime& r : results_[w].rounds) samples.push_back(r.us);
    return median(std::move(samples));
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

void Timer::enqueue(Block& block, double seconds, double settle_seconds) {
    const Sequence& sequence = *sequences_[block.work];
    const TimedWork& work = works_[block.work];
    const double one_us = launch_us_[block.work] * static_cast<double>(sequence.launches());
    const auto runs_in = [&](double s) { return static_cast<std::int64_t>(std::ceil(s * 1e6 / one_us)); };
    const std::int64_t runs = std::max<std::int64_t>(1, runs_in(seconds));
    block.launches = runs * sequence.launches();
    block.stamps = 2 * (block_count_++ % stamp_slots);
    block.has_earlier = runs > 1;
    const SetRange all{0, options_.sets};
    for (std::int64_t i = runs_in(settle_seconds); i > 0; --i) sequence.run(stream_);
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
    if (!block.confirmation) sampler_.attribute(static_cast<int>(block.work));
    block.done.synchronize();
    sampler_.attribute(-1);
    const double all_us = elapsed_us(block.last.start, block.last.stop)
                        + (block.has_earlier ? elapsed_us(block.earlier.start, block.earlier.stop) : 0);
    const double us = all_us / static_cast<double>(block.launches);
    if (block.confirmation) {
        results_[block.work].confirmation.push_back({block.round, us});
        return;
    }
    results_[block.work].rounds.push_back({block.round, us});
    launch_us_[block.work] = us;
    results_[block.work].launches += block.launches;
    if (const auto mhz = clock_mhz(stamp_at(block.stamps), stamp_at(block.stamps + 1)))
        clocks_[block.work].push_back(*mhz);
}

void Timer::record_sequences() {
    const bool burst = options_.mode == Mode::burst;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        sequences_.emplace_back();
        if (!competes(w)) continue;
        check_interrupted();
        const std::int64_t launches =
            recorded_launches(launch_us_[w], options_.sets, burst ? 500 : record_min_us);
        sequences_[w] = std::make_unique<Sequence>(stream_, works_[w], options_.sets, launches);
        sequences_[w]->run(stream_);  // a graph is uploaded by its first launch
    }
    stream_.synchronize();
}

/// Every competitor in turn for `load_seconds`; the host stays a little ahead of the GPU.
void Timer::load() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.load_seconds);
    std::deque<Event> ahead;
    for (std::size_t w = 0; std::chrono::steady_clock::now() < end; w = (w + 1) % works_.size()) {
        check_interrupted();
        if (!competes(w)) continue;
        sequences_[w]->run(stream_);
        ahead.emplace_back(false).record(stream_);
        if (ahead.size() < 3) continue;
        ahead.front().synchronize();
        ahead.pop_front();
    }
}

/// Short blocks of the baselines and of what stands aside, still under load: they choose the baselines of the
/// rounds.
void Timer::select() {
    std::vector<std::size_t> candidates;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        if (!is_ours(works_[w].role) && competes(w)) candidates.push_back(w);
    }
    std::deque<Block> running;
    const auto rounds = static_cast<std::size_t>(options_.select_rounds);
    for (const auto& order : interleaved(candidates.size(), rounds, options_.seed + 2)) {
        for (const std::size_t i : order) {
            check_interrupted();
            running.emplace_back().work = candidates[i];
            enqueue(running.back(), options_.select_seconds, 0);
            if (running.size() < 2) continue;
            collect(running.front());
            running.pop_front();
        }
    }
    while (!running.empty()) collect(running.front()), running.pop_front();

    std::vector<double> times(works_.size());
    for (const std::size_t w : candidates) {
        if (works_[w].role == Role::baseline) times[w] = median_of(w);
    }
    const std::vector<bool> kept = kept_baselines(times, static_cast<std::size_t>(options_.fastest_baselines),
                                                  options_.baselines_within);
    for (const std::size_t w : candidates) {
        TimedResult& result = results_[w];
        if (works_[w].role == Role::aside || !kept[w]) {
            std::vector<double> samples;
            for (const RoundTime& r : result.rounds) samples.push_back(r.us);
            result.time_us = median_interval(std::move(samples));
            result.dropped = true;
        } else {
            clocks_[w].clear();
            result.launches = 0;
        }
        result.rounds.clear();
    }
}

/// Burst: baselines clearly slower than the best of their kind after the first rounds.
void Timer::drop_slow_baselines() {
    double best = INFINITY;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        if (works_[w].role == Role::baseline && competes(w)) best = std::min(best, median_of(w));
    }
    bool first = true;  // the heuristic's own first choice is reported by name: it stays
    for (std::size_t w = 0; w < works_.size(); ++w) {
        if (works_[w].role != Role::baseline || !competes(w)) continue;
        if (!first && median_of(w) > drop_factor * best) results_[w].dropped = true;
        first = false;
    }
}

/// An `other` that was clearly slower than the fastest of ours in its first block gets no second.
void Timer::drop_if_slow(std::size_t other) {
    if (options_.drop_others <= 0 || works_[other].role != Role::other || results_[other].rounds.empty())
        return;
    double best = INFINITY;
    for (std::size_t w = 0; w < works_.size(); ++w) {
        if (is_ours(works_[w].role) && !results_[w].rounds.empty()) best = std::min(best, median_of(w));
    }
    if (median_of(other) > options_.drop_others * best) results_[other].dropped = true;
}

/// Sustained: the next block is in the stream before this one ends, so the GPU never idles. Burst: it
/// idles before each.
void Timer::run_blocks() {
    const bool burst = options_.mode == Mode::burst;
    record_sequences();
    if (!burst) load(), select();
    std::vector<Role> roles;
    for (const TimedWork& work : works_) {
        // Burst has no selection: what stands aside takes part like any of our other plans.
        roles.push_back(burst && work.role == Role::aside ? Role::other : work.role);
    }
    const auto rounds = static_cast<std::size_t>(options_.rounds);
    const auto orders =
        block_rounds(roles, rounds, options_.other_rounds > 0 ? std::size_t(options_.other_rounds) : rounds,
                     options_.seed);
    std::deque<Block> running;
    const auto collect_one = [&] {
        collect(running.front());
        running.pop_front();
    };
    for (std::size_t round = 0; round < orders.size(); ++round) {
        if (burst && round == rounds_before_drop) drop_slow_baselines();
        for (const std::size_t w : orders[round]) {
            drop_if_slow(w);
            if (!competes(w)) continue;
            check_interrupted();
            if (burst) std::this_thread::sleep_for(std::chrono::duration<double>(options_.idle_seconds));
            running.emplace_back().work = w;
            running.back().round = round;
            if (burst) enqueue(running.back(), options_.burst_seconds, 0);
            else enqueue(running.back(), options_.block_seconds, options_.settle_seconds);
            while (running.size() > (burst ? 0u : 1u)) collect_one();
        }
    }
    while (!running.empty()) collect_one();
    if (options_.confirmation.rounds > 0) confirm();
}

std::vector<TimedResult> Timer::finish() {
    const std::vector<GpuStateMeans> means = sampler_.stop();
    for (std::size_t w = 0; w < works_.size(); ++w) {
        TimedResult& result = results_[w];
        if (!result.rounds.empty()) {
            std::vector<double> samples;
            for (const RoundTime& r : result.rounds) samples.push_back(r.us);
            result.time_us = median_interval(std::move(samples));
        }
        const std::size_t slot = options_.mode == Mode::cold ? 0 : w;
        if (slot < means.size()) result.gpu = means[slot];
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
