// `measure fuse --suite`: all problems of a file in one continuous run that can be cut and gone on with.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/fuse/verbs.hpp"
#include "cli/interrupt.hpp"
#include "cli/suite_run.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/suite.hpp"
#include "rooftile/fuse/measurement_report.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

constexpr double suite_cold_seconds = 0.25;

class MemorySuite {
  public:
    MemorySuite(const MeasureFlags& flags, const Invocation& invocation)
        : flags_(flags),
          options_(measure_options(flags, fuse_operation(), invocation.start)),
          suite_(filtered(read_fuse_suite(flags.suite), flags.filter)),
          run_(flags, invocation, suite_.name, suite_.problems.size()),
          request_(fuse_operation().request(flags.given, {.top = suite_top})) {
        set_suite_timing(options_, flags);
        options_.timing.cold_seconds = suite_cold_seconds;
    }

    int run() {
        at_ = live_target(flags_.given, options_.device);
        if (!at_.target.note.empty()) say(at_.target.note);
        options_.machine = &at_.live.machine;
        const auto complete = run_.begin_on(*at_.target.machine, options_.seed);
        std::erase_if(suite_.problems,
                      [&](const FuseSuiteProblem& p) { return complete.count(problem_key({&fuse_operation(), Own::of(p.problem)})) > 0; });
        run_.skip(suite_.problems.size());
        if (suite_.problems.empty()) return run_.finish();
        note_interrupts();
        measure_each(
            {[this] { return next(); }, [this](const RunningGpu& gpu) { run_.announce(gpu, options_.seed); },
             [this](FuseShapeRun shape) { return done(std::move(shape)); }},
            *at_.target.machine, options_);
        return run_.finish();
    }

  private:
    /// On a thread of its own.
    std::optional<FuseTask> next() {
        if (next_ == suite_.problems.size()) return std::nullopt;
        const FuseSuiteProblem& p = suite_.problems[next_++];
        FuseTask task{p.problem, {}, {}, p.layers};
        PlanSet plans = derive_for(at_.target, {&fuse_operation(), Own::of(p.problem)}, request_);
        if (plans.refusal) {
            task.infeasible.emplace();
            task.infeasible->reason = plans.refusal->reason;
            task.infeasible->message = std::move(plans.refusal->message);
            task.infeasible->problem = p.problem;
            task.infeasible->notes = std::move(plans.notes);
            return task;
        }
        task.plans = fuse_plans(plans);
        const std::string why_not = task.plans.front().why_not;
        std::erase_if(task.plans, [](const FusePlan& plan) { return !plan.buildable; });
        if (task.plans.empty()) {
            task.infeasible.emplace();
            task.infeasible->message = "no plan can be built: " + why_not;
            task.infeasible->problem = p.problem;
        }
        return task;
    }

    bool done(FuseShapeRun shape) {
        count_failures(shape);
        const auto lines = shape.task.infeasible ? std::vector<Json>{infeasible_line(
                               run_.context(), *shape.task.infeasible, shape.task.layers, options_.mode)}
                                                 : measurement_lines(run_.context(), shape.run);
        const SuiteLayer& layer = shape.task.layers.front();
        return run_.add(
            lines, {layer.model + " " + layer.layer, outcome_of(shape), shape.seconds, shape.run.timings});
    }

    void count_failures(const FuseShapeRun& shape) {
        SuiteFailures& failures = run_.failures;
        failures.infeasible += shape.task.infeasible ? 1 : 0;
        for (const FuseMeasurement& row : shape.run.rows) {
            const bool wrong = row.verified.checked && !row.verified.ok(), built = row.registers > 0;
            failures.unbuilt += !built && !shape.error;
            failures.wrong += wrong;
            failures.not_run += !wrong && !row.time_us && (built || shape.error);
        }
    }

    static std::string outcome_of(const FuseShapeRun& shape) {
        if (shape.task.infeasible) return "no plan fits: " + shape.task.infeasible->message;
        if (shape.error) return shape.error->what();
        const FuseMeasurement& row = shape.run.rows.front();
        if (!row.time_us) return row.invalid;
        std::string text = time_text(*row.time_us);
        if (row.roof_fraction)
            text += fmt::format(", {:.3f} of {}", *row.roof_fraction, shape.run.baselines.roof_name());
        return text;
    }

    const MeasureFlags& flags_;
    MeasureOptions options_;
    FuseSuite suite_;  ///< what is left of it
    SuiteRun run_;
    Own request_;
    LiveTarget at_;
    std::size_t next_ = 0;
};

}  // namespace

int measure_fuse_suite(const MeasureFlags& flags, const Invocation& invocation) {
    refuse_problem(flags.given, fuse_operation());
    refuse_whole_documents(flags.output);
    return MemorySuite(flags, invocation).run();
}

}  // namespace rooftile::cli
