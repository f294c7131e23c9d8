#include "rooftile/gemm/device/measure.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include <fmt/core.h>

#include "rooftile/gemm/device/bench.hpp"

namespace rooftile {

bool MeasureRun::verified() const {
    return std::all_of(rows.begin(), rows.end(),
                       [](const Measurement& m) { return m.verified.failure.empty(); });
}

namespace {

constexpr const char* arch = "sm_90";  // of sm90_gemm, the one family that can be built

/// A task with its kernels, or its compiler's errors.
struct Prepared {
    MeasureTask task;
    std::vector<KernelOutcome> kernels;
    double seconds = 0;
};

std::optional<Prepared> prepare(const MeasureEvents& events, unsigned threads) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<MeasureTask> task = events.next();
    if (!task) return std::nullopt;
    for (const GemmPlan& plan : task->plans) {
        if (!plan.buildable)
            throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
    }
    Prepared p{std::move(*task), {}, 0};
    p.kernels = compile_all(p.task.plans, {}, threads);
    for (const KernelOutcome& outcome : p.kernels) {
        const auto* error = std::get_if<Error>(&outcome);
        if (error && error->code() != ExitCode::compile_failed) throw *error;
    }
    p.seconds = seconds_since(start);
    return p;
}

/// Marks every row that has no other reason yet; throws where the GPU can no longer be used.
void mark_failed(ShapeRun& run, const Error& error) {
    rethrow_unless_of_one_problem(error);
    for (Measurement& row : run.rows) {
        if (!row.built || !row.verified.failure.empty()) continue;
        row.invalid = error.what();
        row.ran = false;
    }
    run.error = error;
}

}  // namespace

void measure_each(const MeasureEvents& events, const MeasureOptions& options) {
    std::vector<Timing> timings;
    timings.push_back({"before measuring", seconds_since(options.program_start)});
    std::unique_ptr<Context> context;
    Ahead<Prepared> ahead([&events](unsigned threads) { return prepare(events, threads); });
    const std::unique_ptr<Bench> bench = start_bench(options, arch, context, timings);
    GemmBench gemm(*bench);
    bool announced = false;
    while (true) {
        const auto start = std::chrono::steady_clock::now();
        std::optional<Prepared> prepared = ahead.next();
        if (!prepared) break;
        ShapeRun run;
        run.timings.push_back({"derive and compile (beside the one before)", prepared->seconds});
        run.timings.push_back({"wait for it", seconds_since(start)});
        run.task = std::move(prepared->task);
        run.notes = run.task.notes;
        run.rows = empty_rows<Measurement>(run.task, options.mode);
        for (const KernelOutcome& outcome : prepared->kernels) {
            const auto* error = std::get_if<Error>(&outcome);
            if (error && !run.compile_error) run.compile_error = *error;
        }
        try {
            measure_shape(gemm, run, prepared->kernels);
        } catch (const Error& error) { mark_failed(run, error); }
        run.seconds = seconds_since(start);
        if (!announced && events.started) events.started(bench->running());
        announced = true;
        if (!events.done(std::move(run))) break;
    }
    if (events.ended) events.ended(timings);
}

MeasureRun measure(const std::vector<GemmPlan>& plans, const MeasureOptions& options) {
    MeasureRun run;
    if (plans.empty()) return run;
    std::vector<MeasureTask> tasks;
    for (const GemmPlan& plan : plans) {
        if (tasks.empty() || tasks.back().problem != plan.problem)
            tasks.push_back({plan.problem, {}, {}, {}});
        tasks.back().plans.push_back(plan);
    }
    std::set<std::string> hashes;
    std::optional<Error> compile_error;
    std::vector<Timing> of_problems;
    std::size_t next = 0;
    MeasureEvents events;
    events.next = [&]() -> std::optional<MeasureTask> {
        if (next == tasks.size()) return std::nullopt;
        return tasks[next++];
    };
    events.started = [&](const RunningGpu& gpu) {
        run.gpu = gpu.gpu, run.driver = gpu.driver, run.nvrtc = gpu.nvrtc;
    };
    events.done = [&](ShapeRun shape) {
        if (shape.error) throw *shape.error;
        if (!compile_error) compile_error = shape.compile_error;
        hashes.insert(shape.hashes.begin(), shape.hashes.end());
        std::move(shape.rows.begin(), shape.rows.end(), std::back_inserter(run.rows));
        std::move(shape.timings.begin(), shape.timings.end(), std::back_inserter(of_problems));
        for (std::string& note : shape.notes) {
            if (std::find(run.notes.begin(), run.notes.end(), note) == run.notes.end())
                run.notes.push_back(std::move(note));
        }
        return true;
    };
    events.ended = [&](const std::vector<Timing>& timings) { run.timings = timings; };
    measure_each(events, options);
    run.timings.insert(run.timings.end(), of_problems.begin(), of_problems.end());
    const auto unbuilt = [](const Measurement& row) { return !row.built; };
    if (std::all_of(run.rows.begin(), run.rows.end(), unbuilt)) throw *compile_error;
    if (hashes.size() == 1) run.kernel_hash = *hashes.begin();
    return run;
}

}  // namespace rooftile
