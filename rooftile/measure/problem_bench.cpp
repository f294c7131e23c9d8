#include "rooftile/measure/problem_bench.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/core/operation.hpp"
#include "rooftile/measure/counters.hpp"
#include "rooftile/measure/ratios.hpp"

namespace rooftile {
namespace {

class ProblemBench {
  public:
    ProblemBench(Bench& bench, MeasuredProblem& run, std::unique_ptr<Trial> trial,
                 const std::vector<CompiledOutcome>& kernels)
        : bench_(bench),
          options_(bench.options()),
          run_(run),
          tensors_(run.task.plans.problem.operation->tensors(run.task.plans.problem)),
          trial_(std::move(trial)) {
        for (std::size_t i = 0; i < kernels.size(); ++i) add_row(i, kernels[i]);
    }

    void run() {
        if (!launches_.empty()) {
            if (options_.verify) verify();
            if (options_.time && !launches_.empty()) time();
        }
        if (!options_.time) leave_untimed();
        for (std::size_t i = 0; i < rows_.size(); ++i) trial_->finish(row(i), i), explain_row(row(i));
    }

  private:
    /// A user's kernel has no plan of an operation's, so that nothing predicts it.
    void explain_row(Measurement& row) const {
        const Machine* machine = options_.planned_for();
        if (machine && row.plan.own && (options_.explain || options_.energy))
            row.explanation = explain(*machine, row.plan, {options_.explain ? Depth::all : Depth::none, options_.energy});
    }
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
        if (plan > 0 || !options_.time || !options_.baseline) return;
        for (OtherLaunch& other : on_device(*row.plan.operation).other_launches(row.plan, options_.planned_for())) {
            other.kernel.load();
            TensorLaunch launch = launch_of(other.kernel);
            variants_.push_back({std::move(other), std::move(launch), std::nullopt});
        }
    }

    /// Plans, then the first one's other launches.
    std::vector<TensorLaunch> all_launches() const {
        std::vector<TensorLaunch> all = launches_;
        for (const Variant& variant : variants_) all.push_back(variant.launch);
        return all;
    }

    /// What is wrong is not timed. `verified` is of the variants, which are ways to launch plan 1.
    void keep_right(std::span<const Verification> verified) {
        for (std::size_t i = 0; i < variants_.size(); ++i) row(0).verified.blame(verified[i], variants_[i].other.name);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const Verification& verified = row(i).verified;
            if (!verified.compared()) note_once(run_.notes, verified.failure);
            if (verified.wrong()) continue;
            rows_[kept] = rows_[i];
            fingerprints_[kept] = fingerprints_[i];
            launches_[kept++] = launches_[i];
        }
        rows_.resize(kept);
        launches_.resize(kept);
        fingerprints_.resize(kept);
    }

    void verify() {
        bench_.say(fmt::format("verifying {} plan{}", launches_.size(), launches_.size() == 1 ? "" : "s"));
        bench_.busy_from_now();
        std::vector<Verification> verified;
        {
            const Part part(run_.timings, "verify");
            constexpr double results_share = 0.25;  // of what is free, for results that are judged together
            const std::vector<TensorLaunch> launches = all_launches();
            std::vector<const Reference*> references;
            for (std::size_t i = 0; i < launches.size(); ++i) references.push_back(&trial_->reference_of(row(i < rows_.size() ? i : 0).plan));
            VerifiedLaunches all = verify_launches(bench_.kernels(), references, tensors_, launches, share_of_free(results_share), options_.seed, options_.cases);
            verified = std::move(all.verified);
            for (std::size_t i = 0; i < rows_.size(); ++i) row(i).verified = verified[i];
            fingerprints_.assign(all.fingerprints.begin(), all.fingerprints.begin() + std::ptrdiff_t(rows_.size()));
            for (std::size_t i = 0; i < variants_.size(); ++i) variants_[i].fingerprint = all.fingerprints[rows_.size() + i];
        }
        if (!bench_.first_result)
            run_.timings.push_back({"first_result", seconds_since(options_.program_start)});
        bench_.first_result = true;
        keep_right(std::span(verified).subspan(rows_.size()));
        bench_.busy_until_now();
    }

    std::function<void(Stream, std::int64_t)> on_sets(TensorLaunch launch) {
        return [this, launch = std::move(launch)](Stream stream, std::int64_t set) {
            launch(stream, sets_->tensors(set));
        };
    }

    Role role_of(std::size_t launch) const {
        if (!run_.task.roles.empty()) return run_.task.roles[rows_[launch]];
        return launch == 0 ? Role::leader : Role::other;
    }

    void make_sets() {
        const Part part(run_.timings, "buffers and fill");
        const std::int64_t bytes = TensorSets::set_bytes(tensors_), l2_bytes = bench_.device().l2_bytes,
                           count = sets_of_problem(bytes, l2_bytes);
        if (count * bytes < l2_factor * l2_bytes)
            run_.notes.push_back(
                fmt::format("{} buffer sets of {} B are less than {} x L2: part of the inputs may come from L2", count,
                            bytes, l2_factor));
        sets_.emplace(tensors_, count, trial_->reference(), options_.seed);
        if (options_.verify) inputs_checksum_ = sets_->inputs_checksum(bench_.kernels());
    }

    void poison_before(TimedWork& work) {
        work.before = [this](Stream stream, SetRange sets) { sets_->poison_outputs(stream, sets); };
    }

    /// What each timed launch of a work leaves in its set must be the verified result, bit for bit: the counter at
    /// `index` says how often it was not.
    void watch(TimedWork& work, std::size_t index, const std::optional<std::uint64_t>& fingerprint) {
        if (!fingerprint) return;
        const DevicePointer unequal = unequal_.address() + 8 * index;
        poison_before(work);
        work.after = [this, unequal, expected = *fingerprint](Stream stream, SetRange sets) {
            sets_->count_unequal(bench_.kernels(), stream, expected, unequal, sets);
        };
    }

    /// Far from the outputs, and in inputs that later launches did not read, no row's own results tell: all are to blame.
    void judge_surroundings() {
        const std::uint64_t touched = sets_->touched_bytes(bench_.kernels());
        const bool changed = sets_->inputs_checksum(bench_.kernels()) != inputs_checksum_;
        if (touched == 0 && !changed) return;
        const std::string what = touched > 0 ? fmt::format("{} bytes outside all outputs were written", touched)
                                             : std::string("an input was changed");
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            row(i).verified.guards = false;
            row(i).verified.failure = what + " while plans and baselines were timed, by one of them";
            clear_figures(row(i));
        }
    }

    void judge_timed() {
        std::vector<std::uint64_t> unequal(unequal_.bytes() / 8);
        copy_to_host(unequal.data(), unequal_.address(), unequal_.bytes());
        const auto failure = [&](std::size_t index) {
            return fmt::format("of {} buffer sets, timed launches left {} results unlike the verified one, which had the "
                               "same inputs",
                               sets_->sets(), unequal[index]);
        };
        judge_surroundings();
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (!fingerprints_[i]) continue;
            Verification& verified = row(i).verified;
            verified.timed = unequal[i] == 0;
            if (unequal[i] == 0) continue;
            verified.failure = failure(i);
            clear_figures(row(i));
        }
        for (std::size_t i = 0; i < variants_.size(); ++i) {
            if (unequal[rows_.size() + i] == 0) continue;
            Verification other = row(0).verified;
            other.timed = false;
            other.failure = failure(rows_.size() + i);
            row(0).verified.blame(other, variants_[i].other.name);
            clear_figures(row(0));
        }
    }

    void time() {
        if (options_.counters) open_counters();  // and closed again: whoever may not count hears it before timing
        make_sets();
        unequal_ = DeviceBuffer(8 * (launches_.size() + variants_.size()));
        fill_bytes(unequal_.address(), 0, unequal_.bytes(), nullptr);
        synchronize();
        std::vector<TimedWork> works;
        for (std::size_t i = 0; i < launches_.size(); ++i) {
            works.push_back({fmt::format("plan {}", row(i).plan.rank), on_sets(launches_[i]), role_of(i)});
            watch(works.back(), i, options_.verify ? fingerprints_[i] : std::nullopt);
        }
        const std::vector<Measurement*> ours = rows();
        std::vector<TimedWork> baselines = trial_->add_baselines(ours, *sets_, run_.notes, run_.timings);
        const std::size_t beside = baselines.size();
        for (TimedWork& work : baselines) {
            // They meet the dirty lines in L2 that ours do.
            if (options_.verify) poison_before(work);
            works.push_back(std::move(work));
        }
        if (rows_[0] != 0) variants_.clear();  // they are of plan 1
        for (std::size_t i = 0; i < variants_.size(); ++i) {
            works.push_back({variants_[i].other.name, on_sets(variants_[i].launch), Role::leader});
            watch(works.back(), ours.size() + i, variants_[i].fingerprint);
        }
        const std::size_t plans =
            rows_[0] == 0 ? rows_.size() : 0;  // without plan 1 there is no paired re-measurement
        const std::vector<TimedResult> timed =
            bench_.time(works, sets_->sets(), plans, run_.timings, std::size_t(run_.task.rounds));
        trial_->read_baselines(std::span(timed).subspan(ours.size(), beside), run_.notes);
        for (std::size_t i = 0; i < ours.size(); ++i) set_row(i, timed[i], timed[0]);
        set_variants(std::span(timed).subspan(ours.size() + beside));
        if (options_.verify) judge_timed();
        if (options_.counters) count();
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

    /// Each judged as a row of its own, of which the figures are kept.
    void set_variants(std::span<const TimedResult> timed) {
        for (std::size_t i = 0; i < variants_.size(); ++i) {
            const OtherLaunch& other = variants_[i].other;
            Measurement judged;
            judged.plan = other.kernel.plan();
            judged.mode = options_.mode;
            set_times(judged, timed[i]);
            if (judged.time_us) trial_->set_figures(judged, 0, timed[i], run_.notes);
            LaunchVariant variant{.key = other.key, .name = other.name, .predicted_us = judged.plan.time_us};
            if (why_no_result(judged).empty()) {
                variant.time_us = judged.time_us, variant.samples = judged.samples;
                variant.time_us_low = judged.time_us_low, variant.time_us_high = judged.time_us_high;
                for (const Baseline& baseline : judged.baselines)
                    if (baseline.ratio) variant.ratio = baseline.ratio;
            }
            row(0).variants.push_back(std::move(variant));
        }
    }

    static void clear_figures(Measurement& row) {
        row.variants.clear();
        row.time_us = row.time_us_low = row.time_us_high = row.tflops = row.gbytes_per_s = std::nullopt;
        row.interval_coverage.reset();
        row.samples = 0;
        row.roof_fraction.reset();
        row.rank1_ratio.reset();
        row.confirmation.reset();
        for (Baseline& baseline : row.baselines) baseline.ratio.reset();
    }

    std::unique_ptr<CounterSession> open_counters() const {
        return CounterSession::open(bench_.kernels(), options_.device);
    }

    /// Hardware counters of every plan whose result is right, and of a baseline, on the same buffers. Last, as nothing
    /// may be timed beside an open session.
    void count() {
        bench_.say("counting");
        const Part part(run_.timings, "count");
        const auto session = open_counters();
        const std::int64_t sets = sets_->sets();
        const auto launches = std::clamp<std::int64_t>(sets, min_counted_launches, max_counted_launches);
        const auto counted = [&](const TensorLaunch& launch) {
            if (options_.interrupted && options_.interrupted())
                throw Error(ExitCode::interrupted, "interrupted while counting");
            return session->measure(
                [&](Stream stream, std::int64_t number) { launch(stream, sets_->tensors(number % sets)); }, launches);
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
        if (options_.counters && !launches_.empty()) make_sets(), count();
        for (const std::size_t i : rows_) run_.rows[i].invalid = not_timed;
    }

    /// Plan 1 launched in another way.
    struct Variant {
        OtherLaunch other;
        TensorLaunch launch;
        std::optional<std::uint64_t> fingerprint{};  ///< of its verified result
    };

    Bench& bench_;
    const MeasureOptions& options_;
    MeasuredProblem& run_;
    std::vector<TensorInfo> tensors_;
    std::optional<TensorSets> sets_;  ///< baselines of the trial refer to it
    std::uint64_t inputs_checksum_ = 0;
    DeviceBuffer unequal_;            ///< a 64-bit counter of each of `launches_`, then `variants_`
    std::unique_ptr<Trial> trial_;
    std::vector<std::optional<std::uint64_t>> fingerprints_;  ///< of the verified results of `launches_`
    std::vector<std::size_t> rows_;  ///< of `launches_`, those still in the race
    std::vector<TensorLaunch> launches_;
    std::vector<Variant> variants_;
};

}  // namespace

TensorLaunch launch_of(const CompiledKernel& kernel) {
    std::shared_ptr<DeviceBuffer> workspace;
    if (const std::size_t bytes = kernel.workspace_bytes(); bytes > 0) {
        workspace = std::make_shared<DeviceBuffer>(bytes);
        fill_bytes(workspace->address(), 0, workspace->bytes(), nullptr);
        synchronize(Stream(nullptr));
    }
    return [kernel, workspace](Stream stream, std::span<void* const> tensors) {
        try {
            kernel.launch(stream, tensors, workspace ? workspace->data() : nullptr);
        } catch (const Error& error) {
            const Plan& plan = kernel.plan();
            if (error.code() != ExitCode::gpu_failed || !plan.own) throw;  // what nobody planned names itself
            throw Error(error.code(), fmt::format("plan {}, {}: {}", plan.rank, plan.operation->label(plan), error.what()),
                        error.detail());
        }
    };
}

void measure_problem(Bench& bench, MeasuredProblem& problem, PreparedTrial& prepared,
                     const std::vector<CompiledOutcome>& kernels) {
    ProblemBench(bench, problem, prepared.begin(bench, problem.timings), kernels).run();
}

}  // namespace rooftile
