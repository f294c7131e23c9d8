#include "rooftile/measure/problem_bench.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/measure/counters.hpp"
#include "rooftile/measure/ratios.hpp"

namespace rooftile {
namespace {

/// More launches add nothing but time: even small operands have been rotated often enough.
constexpr std::int64_t max_counted_launches = 32;

/// A kernel with the workspace that it takes, if any; its launches follow each other in one stream.
TensorLaunch launch_of(const CompiledKernel& kernel) {
    std::shared_ptr<DeviceBuffer> workspace;
    if (const std::size_t bytes = kernel.workspace_bytes(); bytes > 0) {
        workspace = std::make_shared<DeviceBuffer>(bytes);
        fill_bytes(workspace->address(), 0, workspace->bytes(), nullptr);
        synchronize(Stream(nullptr));
    }
    return [kernel, workspace](Stream stream, std::span<void* const> tensors) {
        kernel.launch(stream, tensors, workspace ? workspace->data() : nullptr);
    };
}

class ProblemBench {
  public:
    ProblemBench(Bench& bench, MeasuredProblem& run, std::unique_ptr<Trial> trial,
                 const std::vector<CompiledOutcome>& kernels)
        : bench_(bench), options_(bench.options()), run_(run), trial_(std::move(trial)) {
        for (std::size_t i = 0; i < kernels.size(); ++i) add_row(i, kernels[i]);
    }

    void run() {
        if (!launches_.empty()) {
            if (options_.verify) verify();
            if (options_.time && !launches_.empty()) time();
        }
        if (!options_.time) leave_untimed();
        for (std::size_t i = 0; i < rows_.size(); ++i) trial_->finish(row(i), i);
    }

  private:
    Measurement& row(std::size_t launch) { return run_.rows[rows_[launch]]; }
    std::vector<Measurement*> rows() {
        std::vector<Measurement*> out;
        for (std::size_t i = 0; i < rows_.size(); ++i) out.push_back(&row(i));
        return out;
    }

    void add_row(std::size_t plan, const CompiledOutcome& outcome) {
        Measurement& row = run_.rows[plan];
        if (const auto* error = std::get_if<Error>(&outcome)) {
            row.invalid = error->what();
            row.built = false;
            row.verified.failure = never_built;
            return;
        }
        const CompiledKernel& kernel = std::get<CompiledKernel>(outcome);
        row.registers = kernel.code().entry.registers;
        row.compile_seconds = kernel.code().compile_seconds;
        kernel.load();
        run_.hashes.push_back(kernel.code().hash);
        rows_.push_back(plan);
        launches_.push_back(launch_of(kernel));
    }

    /// What is wrong is not timed.
    void keep_right() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const Verification& verified = row(i).verified;
            if (!verified.compared()) note_once(run_.notes, verified.failure);
            if (verified.wrong()) continue;
            rows_[kept] = rows_[i];
            launches_[kept++] = launches_[i];
        }
        rows_.resize(kept);
        launches_.resize(kept);
    }

    void verify() {
        bench_.say(fmt::format("verifying {} plan{}", launches_.size(), launches_.size() == 1 ? "" : "s"));
        bench_.busy_from_now();
        std::vector<Verification> verified;
        {
            const Part part(run_.timings, "verify");
            verified = trial_->verify(launches_);
        }
        if (!bench_.first_result)
            run_.timings.push_back({"first_result", seconds_since(options_.program_start)});
        bench_.first_result = true;
        const Part part(run_.timings, "verify special values");
        trial_->verify_special(verified, launches_);
        for (std::size_t i = 0; i < rows_.size(); ++i) row(i).verified = verified[i];
        keep_right();
        bench_.busy_until_now();
    }

    std::function<void(Stream, std::int64_t)> on_sets(TensorLaunch launch) {
        return [this, launch = std::move(launch)](Stream stream, std::int64_t set) {
            launch(stream, trial_->tensors(set));
        };
    }

    Role role_of(std::size_t launch) const {
        if (!run_.task.roles.empty()) return run_.task.roles[rows_[launch]];
        return launch == 0 ? Role::leader : Role::other;
    }

    std::int64_t make_sets() {
        const Part part(run_.timings, "buffers and fill");
        return trial_->make_sets(run_.notes);
    }

    void time() {
        if (options_.counters) open_counters();  // and closed again: whoever may not count hears it before timing
        const std::int64_t sets = make_sets();
        std::vector<TimedWork> works;
        for (std::size_t i = 0; i < launches_.size(); ++i) {
            works.push_back({fmt::format("plan {}", row(i).plan.rank), on_sets(launches_[i]), role_of(i)});
            trial_->watch(works.back(), i);
        }
        const std::vector<Measurement*> ours = rows();
        for (TimedWork& work : trial_->add_baselines(ours, run_.notes, run_.timings)) works.push_back(std::move(work));
        const std::size_t plans =
            rows_[0] == 0 ? rows_.size() : 0;  // without plan 1 there is no paired re-measurement
        const std::vector<TimedResult> timed = bench_.time(works, sets, plans, run_.timings, run_.task.rounds);
        trial_->read_baselines(std::span(timed).subspan(ours.size()), run_.notes);
        for (std::size_t i = 0; i < ours.size(); ++i) set_row(i, timed[i], timed[0]);
        if (options_.verify) {
            const Part part(run_.timings, "verify what was timed");
            trial_->judge_timed(ours, launches_);
            for (Measurement* measured : ours)
                if (measured->verified.wrong()) clear_figures(*measured);
            bench_.busy_until_now();
        }
        if (options_.counters) count(sets);
    }

    void set_row(std::size_t i, const TimedResult& timed, const TimedResult& first) {
        Measurement& m = row(i);
        set_times(m, timed);
        if (!m.time_us) return;
        trial_->set_figures(m, i, timed, run_.notes);
        if (const std::string words = clock_reason_words(timed.gpu.clock_reasons); !words.empty())
            note_once(run_.notes, "the GPU held its clock back: " + words);
        if (i == 0 || rows_[0] != 0) return;
        m.rank1_ratio = rank1_ratio(first, timed);
        m.confirmation = confirmation_of(first, timed);
    }

    static void clear_figures(Measurement& row) {
        row.time_us = row.time_us_low = row.time_us_high = row.tflops = row.gbytes_per_s = std::nullopt;
        row.samples = 0;
        row.roof_fraction.reset();
        row.rank1_ratio.reset();
        row.confirmation.reset();
        for (Baseline& baseline : row.baselines) baseline.ratio.reset();
    }

    std::unique_ptr<CounterSession> open_counters() const {
        std::string why_not;
        auto session = CounterSession::open(bench_.kernels(), options_.device, why_not);
        if (!session)
            throw Error(ExitCode::counters_denied, why_not + "; everything but --counters works without them");
        return session;
    }

    /// Hardware counters of every plan whose result is right, and of a baseline, on the same buffers. Last, as nothing
    /// may be timed beside an open session.
    void count(std::int64_t sets) {
        bench_.say("counting");
        const Part part(run_.timings, "count");
        const auto session = open_counters();
        const auto launches = std::clamp<std::int64_t>(sets, min_counted_launches, max_counted_launches);
        const auto counted = [&](const TensorLaunch& launch) {
            if (options_.interrupted && options_.interrupted())
                throw Error(ExitCode::interrupted, "interrupted while counting");
            return session->measure(
                [&](Stream stream, std::int64_t number) { launch(stream, trial_->tensors(number % sets)); }, launches);
        };
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (!row(i).verified.wrong()) row(i).counters = counted(launches_[i]);
        const auto beside = trial_->counted_baseline();
        if (!beside) return;
        const CounterValues theirs = counted(beside->launch);
        for (std::size_t i = 0; i < rows_.size(); ++i)
            for (Baseline& baseline : row(i).baselines)
                if (baseline.key == beside->key) baseline.counters = theirs;
    }

    /// Counters alone need no time.
    void leave_untimed() {
        if (options_.counters && !launches_.empty()) count(make_sets());
        for (const std::size_t i : rows_) run_.rows[i].invalid = not_timed;
    }

    Bench& bench_;
    const MeasureOptions& options_;
    MeasuredProblem& run_;
    std::unique_ptr<Trial> trial_;
    std::vector<std::size_t> rows_;  ///< of `launches_`, those still in the race
    std::vector<TensorLaunch> launches_;
};

}  // namespace

void measure_problem(Bench& bench, MeasuredProblem& problem, PreparedTrial& prepared,
                     const std::vector<CompiledOutcome>& kernels) {
    ProblemBench(bench, problem, prepared.begin(bench, problem.timings), kernels).run();
}

}  // namespace rooftile
