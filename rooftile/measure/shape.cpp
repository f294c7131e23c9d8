// One problem measured: every plan's result proved right, then all of them timed beside cuBLASLt, then what
// the timed launches left compared with the reference too.
#include <algorithm>

#include <fmt/core.h>

#include "rooftile/measure/bench.hpp"

namespace rooftile {
namespace {

constexpr int l2_factor = 4;               ///< rotated sets are together at least this many L2
constexpr double free_memory_share = 0.6;  ///< of what is free, for rotated sets
constexpr double results_share = 0.25;     ///< of what is free, for results that are judged together

std::int64_t share_of_free(double share) {
    return static_cast<std::int64_t>(share * static_cast<double>(memory_info().free_bytes));
}

/// Two buffers that a copy goes between, in slots that rotate as operands do.
struct CopyBuffers {
    DeviceBuffer from, to;
    std::int64_t bytes = 0, slots = 0;
};

class ShapeBench {
  public:
    ShapeBench(Bench& bench, ShapeRun& run, std::vector<KernelOutcome>& kernels)
        : bench_(bench), options_(bench.options()), run_(run), problem_(run.task.problem) {
        for (std::size_t i = 0; i < run.task.plans.size(); ++i) add_row(i, kernels[i]);
    }

    void run() {
        if (options_.verify && !launches_.empty()) verify();
        if (options_.time && !launches_.empty()) time();
        run_.notes.insert(run_.notes.end(), noted_.begin(), noted_.end());
    }

  private:
    Measurement& row(std::size_t launch) { return run_.rows[rows_[launch]]; }

    void add_row(std::size_t plan, KernelOutcome& outcome) {
        Measurement& row = run_.rows[plan];
        if (const auto* error = std::get_if<Error>(&outcome)) {
            row.invalid = error->what();
            row.built = false;
            row.verified.failure = "never ran: it does not compile";
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

    void say(const std::string& line) const {
        if (options_.progress) options_.progress(line);
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
        say(fmt::format("verifying {} plan{}", launches_.size(), launches_.size() == 1 ? "" : "s"));
        bench_.busy_from_now();
        std::vector<Verification> verified;
        {
            const Part part(run_.timings, "verify");
            const int results =
                GemmVerifier::results_for(problem_, launches_.size(), share_of_free(results_share));
            verifier_ = std::make_unique<GemmVerifier>(bench_.kernels(), problem_, results);
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
        std::string missing = "not asked for";
        const CublasLt* rival = nullptr;
        if (options_.baseline) {
            const Part part(run_.timings, "open cuBLASLt");
            rival = bench_.rival(problem_, missing);
        }
        const OperandSets sets = make_sets();
        std::vector<TimedWork> works;
        for (std::size_t i = 0; i < launches_.size(); ++i) works.push_back(our_work(sets, i));
        const std::size_t ours = works.size();
        for (int index = 0; rival && index < rival->algorithms(); ++index) {
            const GemmLaunch launch = [rival, index](Stream stream, const void* a, const void* b, void* c) {
                rival->launch(index, stream, a, b, c);
            };
            works.push_back({fmt::format("cuBLASLt {}", index), on(sets, launch), Role::rival});
        }
        const std::size_t rivals = works.size() - ours;
        const auto copied = options_.baseline ? make_copy() : std::nullopt;
        if (copied) works.push_back(copy_work(*copied));

        const std::vector<TimedResult> timed = time_all(works, sets);
        const auto algorithms = std::span(timed).subspan(ours, rivals);
        set_rows(std::span(timed).first(ours), algorithms, copied ? &timed.back() : nullptr,
                 copied ? copied->bytes : 0, rival ? "" : missing);
        if (verifier_) judge_timed(sets);
    }

    std::vector<TimedResult> time_all(const std::vector<TimedWork>& works, const OperandSets& sets) {
        say(fmt::format("timing {} candidates over {} buffer sets, {}", works.size(), sets.sets(),
                        name_of(options_.mode)));
        const Part part(run_.timings, fmt::format("time ({})", name_of(options_.mode)));
        const std::shared_ptr<const Nvml> gpu = bench_.gpu();
        TimingOptions timing = options_.timing;
        timing.mode = options_.mode;
        timing.sets = sets.sets();
        timing.seed = options_.seed;
        timing.interrupted = options_.interrupted;
        timing.load_seconds = bench_.load_seconds();
        if (verifier_) verifier_->expect_left(sets.data(Operand::a, 0), sets.data(Operand::b, 0));
        auto timed = time_works(works, timing, bench_.kernels(), gpu, bench_.device().l2_bytes);
        bench_.busy_until_now();
        return timed;
    }

    OperandSets make_sets() {
        const Part part(run_.timings, "buffers and fill");
        const std::int64_t free = share_of_free(free_memory_share), l2_bytes = bench_.device().l2_bytes;
        const std::int64_t bytes = OperandSets::set_bytes(problem_);
        const std::int64_t count = rotated_sets(bytes, l2_bytes, l2_factor, free);
        if (count < 1) {
            throw Error(ExitCode::gpu_failed,
                        fmt::format("one set of A, B and C takes {} B, {} B of GPU memory may be "
                                    "used; free some or take a smaller problem",
                                    bytes, free));
        }
        if (count * bytes < l2_factor * l2_bytes) {
            run_.notes.push_back(fmt::format(
                "{} buffer sets of {} B are less than {} x L2: part of the inputs may come from L2", count,
                bytes, l2_factor));
        }
        OperandSets sets(problem_, count);
        const StreamOwner stream;
        for (const Operand operand : {Operand::a, Operand::b}) {
            bench_.kernels().fill(
                stream, fill_arguments(problem_, operand, sets.view(operand), Fill::normal, options_.seed));
        }
        stream.synchronize();
        return sets;
    }

    static std::function<void(Stream, std::int64_t)> on(const OperandSets& sets, GemmLaunch launch) {
        return [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
            launch(stream, sets.data(Operand::a, set), sets.data(Operand::b, set),
                   sets.data(Operand::c, set));
        };
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
        const Roofs roofs = roofs_of(options_.machine, row(0).plan, sms);
        Baselines baselines = baselines_of(problem_, options_.mode, algorithms, roofs, run_.notes);
        if (copy) baselines.copy_us = copy_time(copied_bytes, options_.mode, *copy, roofs, run_.notes);
        baselines.missing = missing;
        const auto best = best_algorithm(problem_, options_.mode, algorithms, roofs);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            Measurement& r = row(i);
            set_figures(r, ours[i], roofs_of(options_.machine, r.plan, sms));
            r.baselines = baselines;
            if (const auto ratio = best ? paired_ratio(algorithms[*best], ours[i]) : std::nullopt) {
                r.baselines.cublaslt_ratio = ratio->median;
                r.baselines.cublaslt_ratio_low = ratio->low;
                r.baselines.cublaslt_ratio_high = ratio->high;
            }
            const bool behind_first = i > 0 && rows_[0] == 0;
            if (const auto ratio = behind_first ? paired_ratio(ours[0], ours[i]) : std::nullopt)
                r.rank1_ratio = ratio->median;
            for (std::string& note : unchecked_roofs(options_.mode, ours[i], roofs))
                noted_.insert(std::move(note));
            const std::string words = clock_reason_words(ours[i].gpu.clock_reasons);
            if (!words.empty()) noted_.insert("the GPU held its clock back: " + words);
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

    static void clear_figures(Measurement& row) {
        row.time_us = row.time_us_low = row.time_us_high = row.tflops = row.gbytes_per_s = 0;
        row.samples = 0;
        row.roof_fraction.reset();
        row.rank1_ratio.reset();
        row.baselines.cublaslt_ratio.reset();
        row.baselines.cublaslt_ratio_low.reset();
        row.baselines.cublaslt_ratio_high.reset();
    }

    Bench& bench_;
    const MeasureOptions& options_;
    ShapeRun& run_;
    const GemmProblem& problem_;
    std::vector<std::size_t> rows_;  ///< of `launches_`, those still in the race
    std::vector<GemmLaunch> launches_;
    std::unique_ptr<GemmVerifier> verifier_;
    std::set<std::string> noted_;
};

}  // namespace

void measure_shape(Bench& bench, ShapeRun& run, std::vector<KernelOutcome>& kernels) {
    ShapeBench(bench, run, kernels).run();
}

}  // namespace rooftile
