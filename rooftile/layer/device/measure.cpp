#include "rooftile/layer/device/measure.hpp"

#include <algorithm>
#include <chrono>

#include "rooftile/elapsed.hpp"
#include "rooftile/layer/device/run.hpp"
#include "rooftile/layer/plan.hpp"
#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/counters.hpp"

namespace rooftile {
namespace {

constexpr double us_a_second = 1e6;
/// What is timed, and the layers that run before it: a power limit holds the clock by what the last 60 ms took (docs/facts.md), so that
/// each kernel is timed at the layer's own clock.
constexpr double timed_seconds = 0.005, layers_seconds = 0.1, load_seconds = 2;
constexpr std::int64_t most_launches = 20000;  ///< of a graph

/// Launches over all sets again and again, recorded together.
class RecordedLaunches {
  public:
    /// `launch(set)`; at least `seconds` long.
    template <class Launch>
    RecordedLaunches(const StreamOwner& stream, const LayerRun& run, const Launch& launch, double seconds) : stream_(stream) {
        constexpr std::int64_t tried = 20;  // enough for a graph's own start to be little
        record(run, launch, tried);
        run_once();
        const double once = seconds_of() / double(tried);
        const auto rounds = std::int64_t(seconds / once) + 1;
        record(run, launch, std::clamp<std::int64_t>(rounds, 1, std::max<std::int64_t>(1, most_launches / run.sets())));
    }
    void run_once() const { graph_.launch(stream_); }
    /// Of one launch. `before` runs in front, so that the host has asked for all of it when it begins.
    double us_of_one(const RecordedLaunches& before) const {
        before.run_once();
        return us_a_second * seconds_of() / double(launches_);
    }

  private:
    template <class Launch>
    void record(const LayerRun& run, const Launch& launch, std::int64_t rounds) {
        begin_capture(stream_);
        for (std::int64_t i = 0; i < rounds * run.sets(); ++i) launch(stream_.get(), i % run.sets());
        graph_ = end_capture(stream_);
        launches_ = rounds * run.sets();
    }
    double seconds_of() const {
        const Event start, stop;
        start.record(stream_);
        run_once();
        stop.record(stream_);
        stop.synchronize();
        return elapsed_us(start, stop) / us_a_second;
    }
    const StreamOwner& stream_;
    Graph graph_;
    std::int64_t launches_ = 0;
};

/// The layer's time, then each kernel's, in rounds.
void time_layer(const LayerRun& run, const MeasureOptions& options, MeasuredLayer& out) {
    const StreamOwner stream;
    std::vector<RecordedLaunches> works;
    works.emplace_back(
        stream, run, [&](Stream to, std::int64_t set) { run.launch(to, set); }, timed_seconds);
    for (std::size_t i = 0; i < run.kernels().size(); ++i)
        works.emplace_back(
            stream, run, [&, i](Stream to, std::int64_t set) { run.launch(i, to, set); }, timed_seconds);
    const auto keep_busy = [&](double seconds) {
        const auto begin = std::chrono::steady_clock::now();
        do {
            works.front().run_once();
            stream.synchronize();
            if (options.interrupted && options.interrupted()) throw Error(ExitCode::interrupted, "interrupted");
        } while (seconds_since(begin) < seconds);
    };
    keep_busy(load_seconds);
    std::vector<std::vector<double>> samples(works.size());
    for (std::size_t round = 0; round < options.timing.rounds.least; ++round)
        for (std::size_t i = 0; i < works.size(); ++i) {
            keep_busy(layers_seconds);
            samples[i].push_back(works[i].us_of_one(works.front()));
        }
    out.layer_us = median_interval(samples.front());
    for (std::size_t i = 0; i < run.kernels().size(); ++i) out.kernels[i].measured_us = median_interval(samples[i + 1]);
}

/// What each kernel and the whole layer move, over as many sets as while they are timed. Nothing may be timed beside it.
void count_layer(const LayerRun& run, const CounterSession& session, const MeasureOptions& options,
                 MeasuredLayer& out) {
    const auto launches = std::clamp<std::int64_t>(run.sets(), min_counted_launches, max_counted_launches);
    const auto counted = [&](const auto& launch) {
        if (options.interrupted && options.interrupted())
            throw Error(ExitCode::interrupted, "interrupted while counting");
        return session.measure(
            [&](Stream stream, std::int64_t number) { launch(stream, number % run.sets()); }, launches);
    };
    for (std::size_t i = 0; i < run.kernels().size(); ++i)
        out.kernels[i].counters =
            counted([&](Stream stream, std::int64_t set) { run.launch(i, stream, set); });
    out.counters = counted([&](Stream stream, std::int64_t set) { run.launch(stream, set); });
}

}  // namespace

MeasuredLayer measure_layer(LayerPlanner& planner, const LayerModel& model, std::int64_t layer,
                            const LayerStep& step, const MeasureOptions& options, RunningGpu& gpu) {
    const ModelConfig& config = model.config;
    const LayerKind& kind = config.layers.at(std::size_t(layer));
    check_layer_reference(config, step);
    MeasuredLayer out{.model = model, .layer = layer, .step = step, .kernels = {}, .errors = {}};
    const std::vector<LayerPart> parts = layer_parts(config, kind, step);
    std::vector<RunnablePart> kernels = compile_layer(planner.machine(), config, step, parts);
    const std::vector<LayerKernel> predicted = planner.kernels({parts}, config.type, step.tp).front();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        out.kernels.push_back({.name = parts[i].name,
                               .plan = kernels[i].label,
                               .predicted_us = predicted[i].time.graph_us,
                               .least_us = predicted[i].time.least_us});
        out.notes.insert(out.notes.end(), kernels[i].notes.begin(), kernels[i].notes.end());
    }
    std::vector<Timing> timings;
    std::unique_ptr<Context> context;
    const std::unique_ptr<Bench> bench = start_bench(options, Driver::instance().device(options.device).arch(), context, timings);
    gpu = bench->running();
    if (options.counters)
        CounterSession::open(bench->kernels(),
                             options.device);  // who may not count hears it before anything is timed
    const LayerRun run(std::move(kernels), config, kind, step, 0, options.seed);
    out.sets = run.sets(), out.set_bytes = run.set_bytes();
    out.errors = run.verify();
    if (!out.right() || !(options.time || options.counters)) return out;

    const std::vector<unsigned char> verified = run.result();
    if (options.time) time_layer(run, options, out);
    if (options.counters)
        count_layer(run, *CounterSession::open(bench->kernels(), options.device), options, out);
    // The same layers once more: whatever raced meanwhile shows here too.
    const StreamOwner stream;
    for (std::int64_t set = 0; set < run.sets(); ++set) run.launch(stream, set);
    stream.synchronize();
    out.same_bits = run.result() == verified;
    return out;
}

}  // namespace rooftile
