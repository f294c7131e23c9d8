// One problem measured: every plan's result proved right, then all of them timed beside cuBLASLt, then what
// the timed launches left compared with the reference too.
#include <algorithm>

#include <fmt/core.h>

#include "rooftile/gemm/device/bench.hpp"
#include "rooftile/gemm/device/blame_kernels.hpp"
#include "rooftile/measure/counters.hpp"

namespace rooftile {
namespace {

/// More launches add nothing but time: even small operands have been rotated often enough.
constexpr std::int64_t most_counted_launches = 32;

/// Two buffers that a copy goes between, in slots that rotate as operands do.
struct CopyBuffers {
    DeviceBuffer from, to;
    std::int64_t bytes = 0, slots = 0;
};

class ShapeBench {
  public:
    ShapeBench(GemmBench& bench, ShapeRun& run, std::vector<KernelOutcome>& kernels)
        : gemm_(bench), bench_(bench.gpu()), options_(bench_.options()), run_(run), problem_(run.task.problem) {
        for (std::size_t i = 0; i < run.task.plans.size(); ++i) add_row(i, kernels[i]);
    }

    void run() {
        if (options_.verify && !launches_.empty()) verify();
        if (options_.time && !launches_.empty()) time();
        if (!options_.time) leave_untimed();
        run_.notes.insert(run_.notes.end(), noted_.begin(), noted_.end());
    }

  private:
    Measurement& row(std::size_t launch) { return run_.rows[rows_[launch]]; }

    void add_row(std::size_t plan, KernelOutcome& outcome) {
        Measurement& row = run_.rows[plan];
        if (const auto* error = std::get_if<Error>(&outcome)) {
            row.invalid = error->what();
            row.built = false;
            row.verified.failure = never_built;
            return;
        }
        const Kernel kernel = std::get<Kernel>(outcome);
        kernel.load();
        run_.hashes.push_back(kernel.hash());
        rows_.push_back(plan);
        launches_.push_back([kernel](Stream stream, const void* a, const void* b, void* c) {
            kernel.launch(stream, a, b, c);
        });
    }

    /// What is wrong is not timed.
    void keep_verified() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (!row(i).verified.ok()) continue;
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
            verifier_ = gemm_.verifier(problem_, launches_.size());
            verified = verifier_->check_values(options_.seed, launches_);
        }
        if (!bench_.first_result)
            run_.timings.push_back({"first_result", seconds_since(options_.program_start)});
        bench_.first_result = true;
        const Part part(run_.timings, "verify special values");
        verifier_->check_special(verified, options_.seed, launches_);
        for (std::size_t i = 0; i < rows_.size(); ++i) row(i).verified = verified[i];
        keep_verified();
        bench_.busy_until_now();
    }

    void time() {
        if (options_.counters)
            open_counters();  // and closed again: whoever may not count hears it before timing
        std::string missing = "not asked for";
        const CublasLt* rival = nullptr;
        if (options_.baseline) {
            const Part part(run_.timings, "open cuBLASLt");
            rival = gemm_.rival(problem_, missing);
        }
        const OperandSets sets = make_sets();
        std::vector<TimedWork> works;
        for (std::size_t i = 0; i < launches_.size(); ++i) works.push_back(our_work(sets, i));
        const std::size_t ours = works.size();
        const std::size_t rivals = add_rivals(works, rival, sets);
        const std::size_t parts = options_.blame ? add_parts(works, sets) : 0;
        auto copied = options_.baseline ? make_copy() : std::nullopt;
        if (copied) works.push_back(copy_work(*copied));

        const std::vector<TimedResult> timed = time_all(works, sets);
        const auto algorithms = std::span(timed).subspan(ours, rivals);
        set_rows(std::span(timed).first(ours), algorithms, copied ? &timed.back() : nullptr,
                 copied ? copied->bytes : 0, rival ? "" : missing);
        set_parts(std::span(timed).subspan(ours + rivals, parts));
        if (verifier_) judge_timed(sets);
        copied.reset();  // counting needs memory too
        if (options_.counters) count(sets, rival);
    }

    std::vector<TimedResult> time_all(const std::vector<TimedWork>& works, const OperandSets& sets) {
        if (verifier_) verifier_->expect_left(sets.data(Operand::a, 0), sets.data(Operand::b, 0));
        const std::size_t plans = rows_[0] == 0 ? rows_.size() : 0;  // without plan 1 there is no runoff
        return bench_.time(works, sets.sets(), plans, run_.timings, run_.task.rounds);
    }

    OperandSets make_sets() {
        const Part part(run_.timings, "buffers and fill");
        return gemm_.operand_sets(problem_, run_.notes);
    }

    bool is_judged(std::size_t launch) const {
        return verifier_ && launch < static_cast<std::size_t>(verifier_->results());
    }

    /// Every block begins with a poisoned C, and what it left there is copied for judge_timed().
    TimedWork our_work(const OperandSets& sets, std::size_t launch) {
        TimedWork work;
        work.name = fmt::format("plan {}", row(launch).plan.rank);
        work.launch = on(sets, launches_[launch]);
        work.role = launch == 0 ? Role::leader : Role::other;
        if (!is_judged(launch)) return work;
        const auto bytes = static_cast<std::size_t>(2 * span_of(operand_view(problem_, Operand::c, 0)));
        const auto address = [&sets](std::int64_t set) {
            return reinterpret_cast<DevicePointer>(sets.data(Operand::c, set));
        };
        const auto to = reinterpret_cast<DevicePointer>(verifier_->c(launch).data());
        work.before = [=](Stream stream, std::int64_t set) { fill_bytes(address(set), 0xff, bytes, stream); };
        work.after = [=](Stream stream, std::int64_t set) {
            copy_on_device(to, address(set), bytes, stream);
        };
        return work;
    }

    /// Each plan's kernel without a part; what does not compile so has its reason and no place among `works`.
    std::size_t add_parts(std::vector<TimedWork>& works, const OperandSets& sets) {
        bench_.say("compiling without loads, products and store");
        const Part part(run_.timings, "compile without parts");
        const std::size_t before = works.size();
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            row(i).blame = Blame{};
            for (TimedPart& timed : timed_parts(row(i).plan, *row(i).blame)) {
                works.push_back({std::move(timed.name), on(sets, std::move(timed.launch)), Role::other});
                timed_parts_.emplace_back(i, timed.index);
            }
        }
        return works.size() - before;
    }
    void set_parts(std::span<const TimedResult> timed) {
        for (std::size_t i = 0; i < timed.size(); ++i) {
            const auto& [launch, index] = timed_parts_[i];
            set_part(row(launch).blame->parts[index], timed[i]);
        }
    }

    /// A copy that reads half of the problem's compulsory bytes and writes as many.
    std::optional<CopyBuffers> make_copy() const {
        CopyBuffers c;
        c.bytes = ceil_div(static_cast<std::int64_t>(problem_.compulsory_bytes().value / 2), 256) * 256;
        c.slots =
            rotated_sets(2 * c.bytes, bench_.device().l2_bytes, l2_factor, memory_info().free_bytes / 2);
        if (c.slots < 1) return std::nullopt;
        c.from = DeviceBuffer(static_cast<std::size_t>(c.slots * c.bytes));
        c.to = DeviceBuffer(static_cast<std::size_t>(c.slots * c.bytes));
        fill_bytes(c.from.address(), 0x5a, c.from.bytes(), nullptr);
        synchronize();
        return c;
    }

    TimedWork copy_work(const CopyBuffers& copied) const {
        return {"copy",
                [&kernels = bench_.kernels(), &copied](Stream stream, std::int64_t set) {
                    const auto offset = static_cast<DevicePointer>(set % copied.slots * copied.bytes);
                    kernels.copy(stream, copied.to.address() + offset, copied.from.address() + offset,
                                 copied.bytes);
                },
                Role::aside};
    }

    void set_rows(std::span<const TimedResult> ours, std::span<const TimedResult> algorithms,
                  const TimedResult* copy, std::int64_t copied_bytes, const std::string& missing) {
        const int sms = bench_.kernels().sms();
        const Roofs roofs = baseline_roofs_of(options_.machine, problem_, sms);
        Baselines baselines = baselines_of(problem_, options_.mode, algorithms, roofs, run_.notes);
        if (copy) baselines.copy_us = copy_time(copied_bytes, options_.mode, *copy, roofs, run_.notes);
        baselines.missing = missing;
        const auto best = best_rival_ = best_algorithm(problem_, options_.mode, algorithms, roofs);
        if (best) note_timed(noted_, options_.mode, algorithms[*best], roofs);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            Measurement& r = row(i);
            const Roofs our_roofs = roofs_of(options_.machine, r.plan, sms);
            set_figures(r, ours[i], our_roofs);
            r.baselines = baselines;
            if (const auto ratio = best ? paired_ratio(algorithms[*best], ours[i]) : std::nullopt) {
                r.baselines.cublaslt_ratio = ratio->median;
                r.baselines.cublaslt_ratio_low = ratio->low;
                r.baselines.cublaslt_ratio_high = ratio->high;
            }
            if (i > 0 && rows_[0] == 0) {
                r.rank1_ratio = rank1_ratio(ours[0], ours[i]);
                r.runoff = runoff_of(ours[0], ours[i]);
            }
            note_timed(noted_, options_.mode, ours[i], our_roofs);
        }
    }

    /// A result that the timed launches got wrong has no time.
    void judge_timed(const OperandSets& sets) {
        const Part part(run_.timings, "verify what was timed");
        const int results = std::min(verifier_->results(), static_cast<int>(rows_.size()));
        const auto outcomes =
            verifier_->judge_left(sets.data(Operand::a, 0), sets.data(Operand::b, 0), options_.seed, results);
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            Verification& verified = row(i).verified;
            if (is_judged(i)) absorb(verified, VerifyCase::timed, outcomes[i]);
            else verifier_->check_again(verified, options_.seed + 1, launches_[i]);
            if (!verified.ok()) clear_figures(row(i));
        }
        bench_.busy_until_now();
    }

    /// Hardware counters of every plan whose result is right, and of the vendor's best, on the same buffers.
    /// Last, as nothing may be timed beside an open session.
    std::unique_ptr<CounterSession> open_counters() const {
        std::string why_not;
        auto session = CounterSession::open(bench_.kernels(), options_.device, why_not);
        if (!session)
            throw Error(ExitCode::counters_denied,
                        why_not + "; everything but --counters works without them");
        return session;
    }
    void count(const OperandSets& sets, const CublasLt* rival) {
        bench_.say("counting");
        const Part part(run_.timings, "count");
        const auto session = open_counters();
        const auto launches =
            std::clamp<std::int64_t>(sets.sets(), least_counted_launches, most_counted_launches);
        const auto counted = [&](GemmLaunch launch) {
            if (options_.interrupted && options_.interrupted())
                throw Error(ExitCode::interrupted, "interrupted while counting");
            return session->measure(
                [&sets, work = on(sets, std::move(launch))](Stream stream, std::int64_t number) {
                    work(stream, number % sets.sets());
                },
                launches);
        };
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (row(i).verified.ok()) row(i).counters = counted(launches_[i]);
        if (!rival || !best_rival_) return;
        const CounterValues theirs = counted(launch_of(*rival, static_cast<int>(*best_rival_)));
        for (std::size_t i = 0; i < rows_.size(); ++i) row(i).baselines.cublaslt_best_counters = theirs;
    }

    /// Counters alone need no time.
    void leave_untimed() {
        if (options_.counters && !launches_.empty()) count(make_sets(), nullptr);
        for (const std::size_t i : rows_) run_.rows[i].invalid = "not timed, as asked";
    }

    static void clear_figures(Measurement& row) {
        row.time_us = row.time_us_low = row.time_us_high = row.tflops = row.gbytes_per_s = 0;
        row.samples = 0;
        row.roof_fraction.reset();
        row.rank1_ratio.reset();
        row.runoff.reset();
        row.baselines.cublaslt_ratio.reset();
        row.baselines.cublaslt_ratio_low.reset();
        row.baselines.cublaslt_ratio_high.reset();
    }

    GemmBench& gemm_;
    Bench& bench_;
    const MeasureOptions& options_;
    ShapeRun& run_;
    const GemmProblem& problem_;
    std::vector<std::size_t> rows_;  ///< of `launches_`, those still in the race
    std::vector<GemmLaunch> launches_;
    std::unique_ptr<GemmVerifier> verifier_;
    std::vector<std::pair<std::size_t, std::size_t>> timed_parts_;  ///< launch, and which of its parts
    std::optional<std::size_t> best_rival_;                         ///< of cuBLASLt's algorithms
    std::set<std::string> noted_;
};

}  // namespace

void measure_shape(GemmBench& bench, ShapeRun& run, std::vector<KernelOutcome>& kernels) {
    ShapeBench(bench, run, kernels).run();
}

}  // namespace rooftile
