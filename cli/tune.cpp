// tune: a problem's few most unlike plans timed once, the winner kept; and what is kept.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "cli/suite_run.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/tune/tune.hpp"
#include "rooftile/tune/tuned_document.hpp"

namespace rooftile::cli {
namespace {

const char* const tuning = "Tuning";

std::span<const Field> tune_fields() {
    static const Field fields[] = {
        {"plans", "N", fmt::format("Plans to time, the most unlike of those that are kept; default {}", tune_count), tuning},
        {"suite", "FILE", "All problems of FILE", tuning},
        {"filter", "TEXT", "Only problems of a suite whose name holds TEXT", tuning},
    };
    return fields;
}

void write_choices(const DocumentContext& context, const std::vector<TunedChoice>& choices, const OutputFlags& output) {
    const Format format = checked_format(output);
    if (format == Format::text) return write_result(tuned_text(choices, terminal_for(output)), output);
    write_result(document_text(tuned_document(context, choices), format), output);
}

/// "plan 3 of 4 in 12.1 us, 1.031 times as fast as plan 1".
std::string outcome_of(const TunedChoice& choice) {
    const std::string plan = fmt::format("plan {} in {}, ", choice.rank, time_text(choice.time_us));
    return plan + (choice.ratio ? fmt::format("{:.3f} times as fast as plan 1", choice.ratio->median) : choice.first_us ? "no other is faster" : "the fastest, since plan 1 failed");
}

class TuneRun {
  public:
    TuneRun(Suite suite, const Given& given, const OutputFlags& output, const Invocation& invocation)
        : suite_(std::move(suite)), given_(given), output_(output), invocation_(invocation), known_(suite_.problems.size()) {
        if (given.has("plans")) count_ = int(whole_number(given.name("plans"), given.text("plans"), 2, most_tuned));
        if (const std::string why = store_.obstacle(); !why.empty()) throw RequestError("a choice cannot be kept: " + why);
    }

    int run() {
        MeasureOptions options;
        options.baseline = false;
        options.cases = {VerifyCase::exact, VerifyCase::random};
        options.seed = fresh_seed();
        options.timing = tune_timing();
        options.interrupted = interrupted;
        options.program_start = invocation_.start;
        request_ = suite_.operation->request(given_, {.top = tune_kept, .buildable_only = true, .seed = options.seed});
        at_ = live_target(given_, options.device);
        place_ = tune_place(options.device);
        options.machine = &at_.live.machine;
        options.target = at_.target.machine.get();
        DocumentContext context = context_of(*at_.target.machine, invocation_.command);
        note_interrupts();
        measure_each({[this] { return next(); },
                      [&](const RunningGpu& gpu) { context.gpu = GpuContext{gpu.gpu, gpu.driver, gpu.nvrtc, utc_now(), options.seed}; },
                      [this](MeasuredProblem problem) { return done(problem); }},
                     options);
        write_choices(context, choices_, output_);
        return int(code_);
    }

  private:
    /// Nothing is timed of a problem whose choice is kept.
    std::optional<TaskMaker> next() {
        if (next_ == suite_.problems.size()) return std::nullopt;
        return [this, i = next_++] {
            PlanSet plans = derive_for(at_.target, suite_.problems[i].problem, request_);
            keep_buildable(plans);
            known_[i] = store_.find(place_, plans);
            if (known_[i]) plans.plans.clear();
            return tune_task(std::move(plans), count_);
        };
    }

    bool done(const MeasuredProblem& problem) {
        const std::size_t i = done_++;
        const PlanSet& plans = problem.task.plans;
        if (known_[i]) {
            choices_.push_back(*known_[i]);
            return tell(i, outcome_of(*known_[i]) + ", kept since " + known_[i]->date, ExitCode::done);
        }
        if (plans.refusal) return tell(i, "no plan fits: " + plans.refusal->message, ExitCode::no_plan);
        if (problem.error) return tell(i, problem.error->what(), problem.error->code());
        const std::optional<TunedChoice> choice = choice_of(place_, problem.rows);
        for (const Measurement& row : problem.rows) {
            if (row.verified.wrong()) tell(i, fmt::format("plan {}: {}", row.plan.rank, why_no_result(row)), ExitCode::verification_failed);
            if (!row.built)
                tell(i, fmt::format("plan {} is left out: {}", row.plan.rank, row.invalid), choice ? ExitCode::done : ExitCode::compile_failed);
        }
        if (!choice) return tell(i, "no plan has a time", code_ == ExitCode::done ? ExitCode::gpu_failed : code_);
        choices_.push_back(*choice);
        const std::string why = store_.keep(*choice);
        return tell(i, outcome_of(*choice) + (why.empty() ? "" : "; not kept: " + why), why.empty() ? ExitCode::done : ExitCode::internal);
    }

    /// A line a problem of a suite; of one problem what is no result. Returns true.
    bool tell(std::size_t i, const std::string& outcome, ExitCode code) {
        const Problem& problem = suite_.problems[i].problem;
        if (code != ExitCode::done) code_ = code;
        if (suite_.problems.size() > 1)
            say(fmt::format("{}/{} {}: {}", i + 1, suite_.problems.size(), problem.operation->short_name(problem), outcome));
        else if (code != ExitCode::done)
            say(outcome);
        return true;
    }

    Suite suite_;
    const Given& given_;
    const OutputFlags& output_;
    const Invocation& invocation_;
    TuneStore store_{cache_settings()};
    int count_ = tune_count;
    Own request_;
    LiveTarget at_;
    TunePlace place_;
    std::vector<std::optional<TunedChoice>> known_;  ///< of each problem; each is written by the maker of its task alone
    std::size_t next_ = 0, done_ = 0;
    std::vector<TunedChoice> choices_;
    ExitCode code_ = ExitCode::done;
};

int tune(const Operation& operation, const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    Suite suite{.name = {}, .law = {}, .operation = &operation, .problems = {}};
    if (given.has("suite")) {
        refuse_problem(given, operation);
        suite = filtered(read_suite(operation, given.text("suite")), given.text("filter"));
        if (suite.problems.empty())
            throw RequestError(fmt::format("{} {} names no problem of {}", given.name("filter"), given.text("filter"), given.text("suite")));
    } else {
        if (given.has("filter")) throw RequestError(given.name("filter") + " needs --suite FILE");
        suite.problems.push_back({problem_with_work(operation, given), {}, 0});
    }
    return TuneRun(std::move(suite), given, output, invocation).run();
}

}  // namespace

void take_stored_choice(PlanSet& plans, const TunePlace& place, std::size_t top) {
    const auto choice = put_first(TuneStore(cache_settings()), place, plans);
    plans.plans.resize(std::min(top, plans.plans.size()));
    for (std::size_t i = 0; i < plans.plans.size(); ++i) plans.plans[i].rank = int(i) + 1;
    std::string note = "no choice is kept of this problem on this GPU: plan 1 is the planner's; `rooftile tune` makes one";
    if (choice) note = fmt::format("plan 1 is the choice kept on {}: the planner's plan {}", choice->date, choice->rank);
    if (choice && !choice->ratio && choice->first_us) note += fmt::format(", and none of {} was faster", choice->candidates.size());
    plans.notes.push_back(std::move(note));
}

void add_tune(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name()), example(operation->example());
        verbs.push_back({.path = "tune " + name,
                         .meaning = std::string(operation->meaning()),
                         .fields = joined_fields({operation->fields(), target_fields(), tune_fields()}),
                         .documents = Documents::json_only,
                         .examples = fmt::format("Examples:\n  rooftile tune {0} {1}\n  rooftile tune {0} --suite SUITE.toml --plans 8\n"
                                                 "  rooftile measure {0} {1} --tuned\n",
                                                 name, example),
                         .synopsis = example,
                         .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                             return tune(*operation, given, output, invocation);
                         }});
    }
    verbs.push_back({.path = "tune list",
                     .meaning = "Choices that this program made and kept; --json --out FILE exports them",
                     .fields = {},
                     .documents = Documents::json_only,
                     .examples = "Example:\n  rooftile tune list --json --out choices.json\n",
                     .synopsis = "",
                     .run = [](const Given&, const OutputFlags& output, const Invocation& invocation) {
                         write_choices(context_of(invocation.command), TuneStore(cache_settings()).all(program_hash()), output);
                         return int(ExitCode::done);
                     }});
    verbs.push_back({.path = "tune drop",
                     .meaning = "Forget all choices",
                     .fields = {},
                     .examples = "",
                     .synopsis = "",
                     .run = [](const Given&, const OutputFlags& output, const Invocation&) {
                         const std::size_t count = TuneStore(cache_settings()).drop();
                         write_result(fmt::format("dropped {} choice{}\n", count, count == 1 ? "" : "s"), output);
                         return int(ExitCode::done);
                     }});
}

}  // namespace rooftile::cli
