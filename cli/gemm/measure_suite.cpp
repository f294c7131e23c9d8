// `measure gemm --suite`: all problems of a file in one continuous run that can be cut and gone on with.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/gemm/measure_suite.hpp"
#include "cli/gemm/verbs.hpp"
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/suite.hpp"
#include "cli/interrupt.hpp"
#include "cli/suite_run.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

std::string name_of(const MeasureTask& task) {
    std::string name;
    for (const SuiteLayer& layer : task.layers)
        name += fmt::format("{}{} {}", name.empty() ? "" : ", ", layer.model, layer.layer);
    return fmt::format("{} {}x{}x{}", name, task.problem.m, task.problem.n, task.problem.k);
}

class GemmSuite {
  public:
    GemmSuite(const MeasureFlags& flags, const Invocation& invocation)
        : flags_(flags),
          options_(gemm_measure_options(flags, invocation)),
          suite_(filtered(read_suite(flags.suite), flags.filter)),
          run_(flags, invocation, suite_.name, suite_.problems.size()),
          request_(gemm_operation().request(
              flags.given, {.top = suite_top, .buildable_only = true, .seed = options_.seed})) {
        set_suite_timing(options_, flags);
    }

    int run() {
        at_ = live_target(flags_.given, options_.device);
        if (!at_.target.note.empty()) say(at_.target.note);
        options_.machine = &at_.live.machine;
        const auto complete = run_.begin_on(*at_.target.machine, options_.seed);
        std::erase_if(suite_.problems,
                      [&](const SuiteProblem& p) { return complete.count(problem_key({&gemm_operation(), Own::of(p.problem)})) > 0; });
        run_.skip(suite_.problems.size());
        if (suite_.problems.empty()) return run_.finish();
        note_interrupts();
        measure_each(
            {[this] { return next(); }, [this](const RunningGpu& gpu) { run_.announce(gpu, options_.seed); },
             [this](ShapeRun shape) { return done(std::move(shape)); }},
            options_);
        return run_.finish();
    }

  private:
    /// On a thread of its own.
    std::optional<MeasureTask> next() {
        if (next_ == suite_.problems.size()) return std::nullopt;
        const SuiteProblem& p = suite_.problems[next_++];
        MeasureTask task{p.problem, {}, {}, p.layers};
        if (flags_.rounds.empty()) task.rounds = p.rounds;
        PlanSet plans = derive_for(at_.target, {&gemm_operation(), Own::of(p.problem)}, request_);
        task.plans = typed_plans(plans);
        if (plans.refusal) task.infeasible = infeasible_of(p.problem, std::move(plans));
        else task.notes = std::move(plans.notes);
        return task;
    }

    static Infeasible infeasible_of(const GemmProblem& problem, PlanSet plans) {
        Infeasible none{};
        none.reason = plans.refusal->reason;
        none.message = std::move(plans.refusal->message);
        none.problem = problem;
        none.rejected = plans.rejected;
        none.notes = std::move(plans.notes);
        return none;
    }

    bool done(ShapeRun shape) {
        count_failures(shape);
        const auto lines = shape.task.infeasible ? std::vector<Json>{infeasible_line(
                               run_.context(), *shape.task.infeasible, shape.task.layers, options_.mode)}
                                                 : measurement_lines(run_.context(), shape.rows, shape.notes);
        return run_.add(lines, {name_of(shape.task), outcome_of(shape), shape.seconds, shape.timings});
    }

    void count_failures(const ShapeRun& shape) {
        SuiteFailures& failures = run_.failures;
        failures.infeasible += shape.task.infeasible ? 1 : 0;
        for (const Measurement& row : shape.rows) {
            failures.unbuilt += !row.built;
            failures.not_run += !row.ran;
            failures.wrong += row.built && row.ran && !row.verified.ok();
        }
    }

    static std::string outcome_of(const ShapeRun& shape) {
        if (shape.task.infeasible) return "no plan fits: " + shape.task.infeasible->message;
        if (shape.error) return shape.error->what();
        const Measurement& row = shape.rows.front();
        if (const std::string why = why_no_result(row); !why.empty()) return why;
        const auto ratio = row.baselines.cublaslt_ratio;
        return time_text(row.time_us) + (ratio ? fmt::format(", {:.3f} x cuBLASLt", *ratio) : "");
    }

    const MeasureFlags& flags_;
    MeasureOptions options_;
    Suite suite_;  ///< what is left of it
    SuiteRun run_;
    Own request_;
    LiveTarget at_;
    std::size_t next_ = 0;
};

}  // namespace

int measure_gemm_suite(const MeasureFlags& flags, const Invocation& invocation) {
    refuse_problem(flags.given, gemm_operation());
    refuse_whole_documents(flags.output);
    return GemmSuite(flags, invocation).run();
}

}  // namespace rooftile::cli
