#include "rooftile/measure/measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "rooftile/measure/problem_bench.hpp"

namespace rooftile {
namespace {

/// A task with its kernels, or its compiler's errors, and what it is measured with.
struct Prepared {
    MeasureTask task;
    std::vector<CompiledOutcome> kernels;
    std::unique_ptr<PreparedTrial> trial;
    double plan_seconds = 0, seconds = 0;  ///< to plan; all of it
};

/// For each plan that the compiler refuses the next one that is not measured yet and that it takes.
void replace_refused(Prepared& p, const MeasureOptions& options) {
    const auto refused = [](const CompiledOutcome& outcome) {
        const auto* error = std::get_if<Error>(&outcome);
        return error && error->code() == ExitCode::compile_failed;
    };
    PlanSet& measured = p.task.plans;
    if (!p.task.more || std::none_of(p.kernels.begin(), p.kernels.end(), refused)) return;
    PlanSet more = p.task.more();
    keep_buildable(more);
    std::size_t next = measured.plans.size();
    for (std::size_t i = 0; i < p.kernels.size(); ++i)
        while (refused(p.kernels[i]) && next < more.plans.size()) {
            Plan& plan = more.plans[next++];
            CompiledOutcome outcome = compile_outcome(plan, options.compile);
            if (refused(outcome)) continue;
            measured.notes.push_back(refused_plan(measured.plans[i], std::get<Error>(p.kernels[i])));
            measured.plans[i] = std::move(plan);
            p.kernels[i] = std::move(outcome);
        }
}

Prepared prepare(const TaskMaker& make, const MeasureOptions& options, unsigned threads) {
    const auto start = std::chrono::steady_clock::now();
    Prepared p{make(), {}, {}, 0, 0};
    p.plan_seconds = seconds_since(start);
    const std::vector<Plan>& plans = p.task.plans.plans;
    for (const Plan& plan : plans)
        if (!plan.buildable) throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
    if (!plans.empty()) {
        p.kernels = compile_all(plans, threads, options.compile);
        replace_refused(p, options);
        for (const CompiledOutcome& outcome : p.kernels) {
            const auto* error = std::get_if<Error>(&outcome);
            if (error && error->code() != ExitCode::compile_failed) throw *error;
        }
        p.trial = on_device(*plans.front().operation).prepare(p.task.plans.problem, options, threads);
    }
    p.seconds = seconds_since(start);
    return p;
}

/// A row for each plan, nothing measured yet.
std::vector<Measurement> empty_rows(const MeasureTask& task, Mode mode) {
    std::vector<Measurement> rows;
    for (const Plan& plan : task.plans.plans) {
        Measurement& row = rows.emplace_back();
        row.plan = plan;
        row.mode = mode;
        row.plans = int(task.plans.plans.size());
        row.layers = task.layers;
    }
    return rows;
}

/// Marks every row that has no other reason yet; throws where the GPU can no longer be used.
void mark_failed(MeasuredProblem& run, const Error& error) {
    rethrow_unless_of_one_problem(error);
    for (Measurement& row : run.rows) {
        if (!row.built || row.verified.wrong()) continue;
        row.invalid = error.what();
        row.ran = false;
    }
    run.error = error;
}

}  // namespace

bool MeasureRun::verified() const {
    return std::all_of(rows.begin(), rows.end(), [](const Measurement& m) { return m.verified.ok(); });
}

void keep_buildable(PlanSet& plans) {
    if (plans.plans.empty()) return;
    const std::string why_not = plans.plans.front().why_not;
    std::erase_if(plans.plans, [](const Plan& plan) { return !plan.buildable; });
    if (plans.plans.empty())
        plans.refusal = Refusal{Reason::instruction, "no plan can be built: " + why_not, std::nullopt, std::nullopt};
}

void measure_each(const MeasureEvents& events, const MeasureOptions& options) {
    std::vector<Timing> timings;
    timings.push_back({"before measuring", seconds_since(options.program_start)});
    std::unique_ptr<Context> context;
    const std::string arch = Driver::instance().device(options.device).arch();
    Ahead<TaskMaker, Prepared> ahead(
        events.next, [&](const TaskMaker& task, unsigned threads) { return prepare(task, options, threads); },
        ahead_threads(std::thread::hardware_concurrency()));
    const std::unique_ptr<Bench> bench = start_bench(options, arch, context, timings);
    bool announced = false;
    while (true) {
        const auto start = std::chrono::steady_clock::now();
        std::optional<Prepared> prepared = ahead.next();
        if (!prepared) break;
        MeasuredProblem run;
        run.timings.push_back({"derive (beside those before)", prepared->plan_seconds});
        run.timings.push_back({"compile (beside those before)", prepared->seconds - prepared->plan_seconds});
        run.timings.push_back({"wait for it", seconds_since(start)});
        run.task = std::move(prepared->task);
        run.notes = run.task.plans.notes;
        run.rows = empty_rows(run.task, options.mode);
        for (const CompiledOutcome& outcome : prepared->kernels) {
            const auto* error = std::get_if<Error>(&outcome);
            if (error && !run.compile_error) run.compile_error = *error;
        }
        try {
            if (prepared->trial) measure_problem(*bench, run, *prepared->trial, prepared->kernels);
        } catch (const Error& error) { mark_failed(run, error); }
        run.seconds = seconds_since(start);
        if (!announced && events.started) events.started(bench->running());
        announced = true;
        if (!events.done(std::move(run))) break;
    }
    if (events.ended) events.ended(timings);
}

MeasureRun measure(std::vector<MeasureTask> tasks, const MeasureOptions& options) {
    MeasureRun run;
    if (tasks.empty()) throw RequestError("there is no plan to measure");
    std::set<std::string> hashes;
    std::optional<Error> compile_error;
    std::vector<Timing> of_problems;
    std::size_t next = 0;
    MeasureEvents events;
    events.next = [&]() -> std::optional<TaskMaker> {
        if (next == tasks.size()) return std::nullopt;
        return [&task = tasks[next++]] { return std::move(task); };
    };
    events.started = [&](const RunningGpu& gpu) { run.gpu = gpu; };
    events.done = [&](MeasuredProblem problem) {
        if (problem.error) throw *problem.error;
        if (!compile_error) compile_error = problem.compile_error;
        hashes.insert(problem.hashes.begin(), problem.hashes.end());
        std::move(problem.rows.begin(), problem.rows.end(), std::back_inserter(run.rows));
        std::move(problem.timings.begin(), problem.timings.end(), std::back_inserter(of_problems));
        for (std::string& note : problem.notes) note_once(run.notes, std::move(note));
        return true;
    };
    events.ended = [&](const std::vector<Timing>& timings) { run.timings = timings; };
    measure_each(events, options);
    run.timings.insert(run.timings.end(), of_problems.begin(), of_problems.end());
    const auto unbuilt = [](const Measurement& row) { return !row.built; };
    if (compile_error && std::all_of(run.rows.begin(), run.rows.end(), unbuilt)) throw *compile_error;
    if (hashes.size() == 1) run.kernel_hash = *hashes.begin();
    return run;
}

}  // namespace rooftile
