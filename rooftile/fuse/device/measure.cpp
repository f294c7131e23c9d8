#include "rooftile/fuse/device/measure.hpp"

#include "rooftile/fuse/device/shape.hpp"

namespace rooftile {
namespace {

std::optional<PreparedFuse> prepare(const FuseEvents& events, const Machine& machine,
                                    const MeasureOptions& options, unsigned threads) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<FuseTask> task = events.next();
    if (!task) return std::nullopt;
    PreparedFuse p;
    p.task = std::move(*task);
    std::vector<FusePlan> plans = p.task.plans;
    if (options.time && options.baseline && !plans.empty()) {
        try {
            p.chain = unfused_kernels(p.task.problem);
            const std::vector<FusePlan> alone = unfused_plans(machine, p.chain);
            plans.insert(plans.end(), alone.begin(), alone.end());
        } catch (const Error& error) {
            p.chain.clear();
            p.chain_missing = error.what();
        }
    }
    p.kernels = compile_all(plans, threads);
    const auto own = p.kernels.begin() + std::ptrdiff_t(p.task.plans.size());
    p.chain_kernels.assign(own, p.kernels.end());
    p.kernels.erase(own, p.kernels.end());
    p.seconds = seconds_since(start);
    return p;
}

/// Marks every row that has neither a time nor another reason; throws where the GPU can no longer be used.
void mark_failed(FuseShapeRun& shape, const Error& error) {
    rethrow_unless_of_one_problem(error);
    for (FuseMeasurement& row : shape.run.rows)
        if (row.invalid.empty() && !row.time_us) row.invalid = error.what();
    shape.error = error;
}

}  // namespace

void measure_each(const FuseEvents& events, const Machine& machine, const MeasureOptions& options) {
    std::vector<Timing> timings;
    timings.push_back({"before measuring", seconds_since(options.program_start)});
    std::unique_ptr<Context> context;
    const std::string arch = Driver::instance().device(options.device).arch();
    Ahead<PreparedFuse> ahead([&](unsigned threads) { return prepare(events, machine, options, threads); });
    const std::unique_ptr<Bench> bench = start_bench(options, arch, context, timings);
    bool announced = false;
    while (true) {
        const auto start = std::chrono::steady_clock::now();
        std::optional<PreparedFuse> prepared = ahead.next();
        if (!prepared) break;
        FuseShapeRun shape;
        shape.run.timings.push_back({"derive and compile (beside the one before)", prepared->seconds});
        shape.run.timings.push_back({"wait for it", seconds_since(start)});
        shape.task = prepared->task;
        shape.run.rows = empty_rows<FuseMeasurement>(shape.task, options.mode);
        try {
            measure_shape(*bench, shape, *prepared, machine);
        } catch (const Error& error) { mark_failed(shape, error); }
        shape.seconds = seconds_since(start);
        if (!announced && events.started) events.started(bench->running());
        announced = true;
        if (!events.done(std::move(shape))) break;
    }
    if (events.ended) events.ended(timings);
}

FuseRun measure(const std::vector<FusePlan>& plans, const Machine& machine, const MeasureOptions& options) {
    if (plans.empty()) throw RequestError("there is no plan to measure");
    FuseRun run;
    RunningGpu gpu;
    std::vector<Timing> before;
    bool asked = false;
    FuseEvents events;
    events.next = [&]() -> std::optional<FuseTask> {
        if (std::exchange(asked, true)) return std::nullopt;
        return FuseTask{plans.front().problem, plans, {}, {}};
    };
    events.started = [&](const RunningGpu& running) { gpu = running; };
    events.done = [&](FuseShapeRun shape) {
        if (shape.error) throw *shape.error;
        run = std::move(shape.run);
        return false;
    };
    events.ended = [&](const std::vector<Timing>& timings) { before = timings; };
    measure_each(events, machine, options);
    run.timings.insert(run.timings.begin(), before.begin(), before.end());
    run.gpu = gpu.gpu, run.driver = gpu.driver, run.nvrtc = gpu.nvrtc;
    return run;
}

}  // namespace rooftile
