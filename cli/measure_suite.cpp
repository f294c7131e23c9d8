// `measure OPERATION --suite`: all problems of a file in one continuous run that can be cut and gone on with.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/suite_run.hpp"
#include "rooftile/measure/measure.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/tune/tune.hpp"

namespace rooftile::cli {
namespace {

class SuiteMeasure {
  public:
    SuiteMeasure(Suite suite, const MeasureFlags& flags, const Invocation& invocation, int top)
        : flags_(flags),
          top_(top),
          options_(measure_options(flags, *suite.operation, invocation.start)),
          suite_(filtered(std::move(suite), flags.filter)),
          run_(flags, invocation, suite_),
          request_(requested(top_)) {
        set_suite_timing(options_, flags);
    }

    int run() {
        at_ = live_target(flags_.given, options_.device);
        if (!at_.target.note.empty()) say(at_.target.note);
        options_.machine = &at_.live.machine;
        options_.target = at_.target.machine.get();
        const auto complete = run_.begin_on(*at_.target.machine, options_.seed);
        if (flags_.given.has("tuned")) place_ = tune_place(options_.device);
        // What is drawn is drawn by the seed of the run that is gone on with.
        request_ = requested(place_ ? std::max(top_, tune_kept) : top_);
        std::erase_if(suite_.problems,
                      [&](const SuiteProblem& p) { return complete.count(problem_key(p.problem)) > 0; });
        run_.skip(suite_.problems.size());
        if (suite_.problems.empty()) return run_.finish();
        note_interrupts();
        measure_each({[this] { return next(); },
                      [this](const RunningGpu& gpu) { run_.announce(gpu, options_.seed); },
                      [this](MeasuredProblem problem) { return done(std::move(problem)); }},
                     options_);
        return run_.finish();
    }

  private:
    Own requested(int top) const {
        return suite_.operation->request(flags_.given, {.top = top, .buildable_only = true, .seed = options_.seed});
    }
    std::optional<TaskMaker> next() {
        if (next_ == suite_.problems.size()) return std::nullopt;
        return [this, &p = suite_.problems[next_++]] {
            MeasureTask task{derive_for(at_.target, p.problem, request_), p.layers};
            if (flags_.rounds.empty()) task.rounds = p.rounds;
            keep_buildable(task.plans);
            const bool asked = flags_.given.has("top");
            if (place_ && !task.plans.refusal)
                take_stored_choice(task.plans, *place_, asked ? task.plans.plans.size() : std::size_t(top_));
            task.more = [this, &p] { return derive_for(at_.target, p.problem, requested(top_ + plans_behind)); };
            return task;
        };
    }

    bool done(MeasuredProblem problem) {
        count_failures(problem);
        const MeasureTask& task = problem.task;
        const auto lines =
            task.plans.refusal
                ? std::vector<Json>{infeasible_line(run_.context(), task.plans, task.layers, options_.mode)}
                : measurement_lines(run_.context(), problem.rows, problem.notes);
        return run_.add(lines, {name_of({task.plans.problem, task.layers, 0}), outcome_of(problem), problem.seconds,
                                problem.timings, prediction_error_of(problem)});
    }

    void count_failures(const MeasuredProblem& problem) {
        SuiteFailures& failures = run_.failures;
        failures.infeasible += problem.task.plans.refusal ? 1 : 0;
        for (const Measurement& row : problem.rows) {
            failures.unbuilt += !row.built;
            failures.not_run += !row.ran;
            failures.wrong += is_unproven(row);
        }
    }

    static std::optional<double> prediction_error_of(const MeasuredProblem& problem) {
        if (problem.rows.empty()) return std::nullopt;
        const Measurement& row = problem.rows.front();
        if (!why_no_result(row).empty() || !row.time_us || !row.plan.time_us) return std::nullopt;
        return *row.plan.time_us / *row.time_us - 1;
    }

    static std::string outcome_of(const MeasuredProblem& problem) {
        if (problem.task.plans.refusal) return "no plan fits: " + problem.task.plans.refusal->message;
        if (problem.error) return problem.error->what();
        const Measurement& row = problem.rows.front();
        if (const std::string why = why_no_result(row); !why.empty()) return why;
        std::string text = row.time_us ? time_text(*row.time_us) : "not timed";
        for (const Baseline& b : row.baselines)
            if (b.ratio) text += fmt::format(", {:.3f} x {}", b.ratio->median, b.name);
        if (row.roof_fraction) text += fmt::format(", {:.3f} of the {} roof", *row.roof_fraction, row.roof);
        return text;
    }

    const MeasureFlags& flags_;
    int top_;
    MeasureOptions options_;
    Suite suite_;  ///< what is left of it
    SuiteRun run_;
    Own request_;
    LiveTarget at_;
    std::optional<TunePlace> place_;  ///< of --tuned
    std::size_t next_ = 0;
};

}  // namespace

int measure_problems(Suite suite, const MeasureFlags& flags, const Invocation& invocation, int top) {
    refuse_whole_documents(flags.output, "--suite");
    return SuiteMeasure(std::move(suite), flags, invocation, top).run();
}

int measure_suite(const Operation& operation, const MeasureFlags& flags, const Invocation& invocation) {
    refuse_problem(flags.given, operation);
    refuse_whole_documents(flags.output, "--suite");
    return measure_problems(read_suite(operation, flags.suite), flags, invocation, suite_top);
}

}  // namespace rooftile::cli
