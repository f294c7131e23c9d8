#include "rooftile/probe/steady.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "rooftile/measure/statistics.hpp"
#include "rooftile/probe/fit.hpp"

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;
constexpr double settle_seconds = 0.9;   ///< before the window: clock and power follow the load
constexpr double window_seconds = 1.1;   ///< that the energy counter is read over
constexpr double reading_seconds = 0.3;  ///< at its end: NVML's power is a mean over a second by itself

/// Launches without a pause for `seconds`, the host a few ahead; calls `tick` between.
class Pump {
  public:
    Pump(const SampledLaunch& run, Stream stream)
        : run_(run), stream_(stream), records_(sizeof(ProbeRecord) * slots * run.ctas) {
        fill_bytes(records_.address(), 0, records_.bytes(), stream);
    }
    void until(Clock_::time_point end) {
        while (Clock_::now() < end) {
            run_.launch(stream_, records_.address() + sizeof(ProbeRecord) * run_.ctas * (launched_ % slots),
                        static_cast<int>(launched_ % 1000));
            ++launched_;
            ahead_.emplace_back(false).record(stream_);
            if (ahead_.size() < 4) continue;
            ahead_.front().synchronize();
            ahead_.pop_front();
        }
    }
    /// The records of launches [first, launched), the newest `slots` of them at most.
    std::vector<std::vector<ProbeRecord>> since(std::size_t first) {
        synchronize(stream_);
        std::vector<ProbeRecord> all(slots * run_.ctas);
        copy_to_host(all.data(), records_.address(), records_.bytes());
        first = std::max(first, launched_ > slots ? launched_ - slots : 0);
        std::vector<std::vector<ProbeRecord>> read;
        for (std::size_t i = first; i < launched_; ++i) {
            const auto* at = all.data() + i % slots * run_.ctas;
            read.emplace_back(at, at + run_.ctas);
        }
        return read;
    }
    std::size_t launched() const { return launched_; }

  private:
    static constexpr std::size_t slots = 1024;
    const SampledLaunch& run_;
    Stream stream_;
    DeviceBuffer records_;
    std::deque<Event> ahead_;
    std::size_t launched_ = 0;
};

/// Rates over a stretch of launches, first begin to last end, the gaps between them included.
void read_rates(const std::vector<std::vector<ProbeRecord>>& launches, Steady& steady) {
    unsigned long long first = ~0ull, last = 0;
    double cycles = 0, nanoseconds = 0;
    std::vector<double> clocks, boxes;
    for (const auto& records : launches) {
        LaunchSamples one;
        add_sample(one, records);
        clocks.push_back(one.clock_hz.front());
        double sum = 0;
        for (const ProbeRecord& r : records) {
            first = std::min(first, r.begin_nanoseconds);
            last = std::max(last, r.end_nanoseconds);
            sum += static_cast<double>(r.boxes);
            cycles += static_cast<double>(r.end_cycles - r.begin_cycles);
            nanoseconds += static_cast<double>(r.end_nanoseconds - r.begin_nanoseconds);
        }
        boxes.push_back(sum);
    }
    steady.seconds = 1e-9 * static_cast<double>(last - first);
    steady.launches = static_cast<double>(launches.size());
    steady.clock_spread = (quantile(clocks, 0.9) - quantile(clocks, 0.1)) / 2;
    steady.clock_hz = nanoseconds > 0 ? 1e9 * cycles / nanoseconds : 0;
    steady.boxes = median(std::move(boxes));
}

struct EnergyReading {
    double joules;
    Clock_::time_point at;
};

/// 0 where there is no such counter.
double joules(const Nvml* nvml) { return nvml ? nvml->energy_j().value_or(0) : 0; }

}  // namespace

double steady_seconds(double scale) { return scale * settle_seconds + window_seconds + 0.5; }

Steady keep_up(LaunchSampler& launcher, const SampledLaunch* run, double scale) {
    Steady steady;
    const auto nvml = launcher.nvml();
    const auto start = Clock_::now();
    const auto after = [&](double seconds) {
        return start + std::chrono::duration_cast<Clock_::duration>(std::chrono::duration<double>(seconds));
    };
    std::unique_ptr<Pump> pump;
    if (run) pump = std::make_unique<Pump>(*run, launcher.stream());
    const auto busy_until = [&](double seconds) {
        if (pump) pump->until(after(seconds));
        else std::this_thread::sleep_until(after(seconds));
    };
    GpuSampler sampler(nvml);
    // The counter moves in steps of some 0.1 s: a window begins and ends where it has just moved.
    const auto edge = [&](double from) {
        busy_until(from);
        const double old = joules(nvml.get());
        EnergyReading reading{old, Clock_::now()};
        for (double at = from; old > 0 && reading.joules == old && at < from + 0.25; at += 0.004) {
            busy_until(at);
            reading = {joules(nvml.get()), Clock_::now()};
        }
        return reading;
    };
    const EnergyReading before = edge(scale * settle_seconds);
    const std::size_t first = pump ? pump->launched() : 0;
    const double begun = std::chrono::duration<double>(before.at - start).count();
    busy_until(begun + window_seconds - reading_seconds);
    sampler.attribute(0);
    const EnergyReading after_window = edge(begun + window_seconds);
    sampler.attribute(-1);
    if (pump) read_rates(pump->since(first), steady);
    const std::vector<GpuStateMeans> means = sampler.stop();
    if (!means.empty()) {
        steady.reading_w = means[0].power_w;
        steady.temperature_c = means[0].temperature_c;
        steady.reasons = means[0].clock_reasons;
        if (!run && means[0].sm_clock_mhz) steady.clock_hz = 1e6 * *means[0].sm_clock_mhz;
    }
    if (before.joules > 0 && after_window.joules > before.joules)
        steady.counter_w = (after_window.joules - before.joules)
                           / std::chrono::duration<double>(after_window.at - before.at).count();
    // The reading, a mean over a second, says 680 to 690 W of loads that one limit holds; the counter's steps
    // are uneven, and its windows scatter from 650 to 690.
    steady.power_w = steady.reading_w.value_or(steady.counter_w.value_or(0));
    return steady;
}

}  // namespace rooftile
