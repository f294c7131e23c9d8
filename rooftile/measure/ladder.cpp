#include "rooftile/measure/ladder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <set>
#include <variant>

#include "rooftile/kernel/kernel.hpp"
#include "rooftile/kernel/ladder.hpp"
#include "rooftile/measure/bench.hpp"

namespace rooftile {
namespace {

constexpr int l2_factor = 4;               ///< rotated sets are together at least this many L2
constexpr double free_memory_share = 0.6;  ///< of what is free, for rotated sets
constexpr double results_share = 0.25;     ///< of what is free, for results that are judged together

/// A compiled rung, the compiled plan, the compiler's error, or nothing where there is an obstacle.
using Built = std::variant<std::monostate, CachedCompile, Kernel, Error>;

LadderRow row_of(Rung rung, const GemmProblem& problem, const Machine& machine) {
    LadderRow row;
    row.rung = rung;
    row.name = label_of(rung);
    row.adds = adds_of(rung);
    row.prediction = predict_rung(machine, rung, problem);
    row.threads = ladder_config(rung).threads();
    row.obstacle = obstacle_of(rung, problem);
    return row;
}

LadderRow row_of(const GemmPlan& plan) {
    LadderRow row;
    row.name = "planned";
    row.adds = "the planner's own";
    row.prediction.time_us = plan.prediction.time_us;
    row.prediction.tflops = plan.prediction.tflops;
    row.prediction.bound = plan.prediction.bound;
    row.prediction.unknown = plan.unknown;
    row.prediction.reason = "the plan's own; rooftile plan gemm --explain shows each step";
    row.threads = static_cast<int>(plan.resources.threads.value_or(0));
    row.measured.plan = plan;
    return row;
}

class LadderBench {
  public:
    LadderBench(const GemmProblem& problem, const Machine& machine, const std::optional<GemmPlan>& plan,
                const MeasureOptions& options)
        : problem_(problem), plan_(plan), options_(options) {
        run_.problem = problem;
        run_.mode = options.mode;
        for (int i = 0; i < rung_count; ++i)
            run_.rows.push_back(row_of(static_cast<Rung>(i), problem, machine));
        if (plan) run_.rows.push_back(row_of(*plan));
        for (LadderRow& row : run_.rows) row.measured.mode = options.mode;
    }

    LadderRun run() {
        run_.timings.push_back({"before measuring", seconds_since(options_.program_start)});
        const std::string arch = Driver::instance().device(options_.device).arch();
        const auto context = Context::current_or_primary(options_.device);
        build(arch);
        if (options_.verify) verify();
        if (options_.time && !launches_.empty()) time();
        const RunningGpu gpu = bench_->running();
        run_.gpu = gpu.gpu, run_.driver = gpu.driver, run_.nvrtc = gpu.nvrtc;
        run_.notes.insert(run_.notes.end(), noted_.begin(), noted_.end());
        return std::move(run_);
    }

  private:
    Measurement& measured(std::size_t launch) { return run_.rows[rows_[launch]].measured; }

    void say(const std::string& line) const {
        if (options_.progress) options_.progress(line);
    }

    Built build_row(const LadderRow& row, const std::string& arch) const {
        if (!row.obstacle.empty()) return {};
        try {
            if (row.rung) return compile_cached(ladder_source(*row.rung, problem_.a_type, arch));
            return compile(*plan_);
        } catch (const Error& error) { return error; }
    }

    void build(const std::string& arch) {
        say("compiling the ladder");
        for (LadderRow& row : run_.rows) {
            if (row.rung && row.obstacle.empty()) row.obstacle = arch_obstacle(*row.rung, arch);
            row.measured.plan.problem = problem_;
            // Which family's peak is the roof of every row.
            if (row.rung)
                row.measured.plan.config.kernel =
                    arch == "sm_90" ? GemmKernel::sm90_gemm : GemmKernel::sm80_gemm;
        }
        std::vector<Built> built(run_.rows.size());
        {
            const Part part(run_.timings, "compile");
            auto own = std::async(std::launch::async, [&] { return compile_measure_kernels(arch); });
            in_parallel(built.size(), 0, [&](std::size_t i) { built[i] = build_row(run_.rows[i], arch); });
            bench_ = std::make_unique<Bench>(options_, own.get());
        }
        for (std::size_t i = 0; i < built.size(); ++i) load(i, built[i]);
        const auto failed = std::find_if(built.begin(), built.end(),
                                         [](const Built& b) { return std::holds_alternative<Error>(b); });
        if (launches_.empty() && failed != built.end()) throw std::get<Error>(*failed);
    }

    void load(std::size_t index, const Built& built) {
        LadderRow& row = run_.rows[index];
        if (std::holds_alternative<std::monostate>(built)) return;
        if (const auto* error = std::get_if<Error>(&built)) {
            if (error->code() != ExitCode::compile_failed) throw *error;
            row.measured.invalid = error->what();
            row.measured.built = false;
            return;
        }
        if (const auto* planned = std::get_if<Kernel>(&built)) {
            planned->load();
            row.registers = planned->entry().registers;
            row.compile_seconds = planned->compile_seconds();
            add_launch(index, [kernel = *planned](Stream stream, const void* a, const void* b, void* c) {
                kernel.launch(stream, a, b, c);
            });
            return;
        }
        const auto& compiled = std::get<CachedCompile>(built);
        row.registers = compiled.compiled.entries.front().registers;
        row.compile_seconds = compiled.compiled.seconds;
        add_launch(index, [kernel = LadderKernel(*row.rung, compiled), problem = problem_](
                              Stream stream, const void* a, const void* b, void* c) {
            kernel.launch(stream, a, b, c, problem);
        });
    }

    void add_launch(std::size_t row, GemmLaunch launch) {
        rows_.push_back(row);
        launches_.push_back(std::move(launch));
    }

    /// What is wrong is not timed.
    void verify() {
        say(fmt::format("verifying {} kernels", launches_.size()));
        const Part part(run_.timings, "verify");
        const auto free = static_cast<std::int64_t>(results_share * double(memory_info().free_bytes));
        const int results = GemmVerifier::results_for(problem_, launches_.size(), free);
        verifier_ = std::make_unique<GemmVerifier>(bench_->kernels(), problem_, results);
        auto verified = verifier_->check_values(options_.seed, launches_);
        verifier_->check_special(verified, options_.seed, launches_);
        std::vector<std::size_t> rows;
        std::vector<GemmLaunch> launches;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            measured(i).verified = verified[i];
            if (!verified[i].ok()) continue;
            rows.push_back(rows_[i]);
            launches.push_back(launches_[i]);
        }
        rows_ = std::move(rows);
        launches_ = std::move(launches);
    }

    OperandSets make_sets() {
        const Part part(run_.timings, "buffers and fill");
        const auto free = static_cast<std::int64_t>(free_memory_share * double(memory_info().free_bytes));
        const std::int64_t bytes = OperandSets::set_bytes(problem_), l2_bytes = bench_->device().l2_bytes;
        const std::int64_t count = rotated_sets(bytes, l2_bytes, l2_factor, free);
        if (count < 1)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("one set of A, B and C takes {} B, {} B of GPU memory may be used; free "
                                    "some or take a smaller problem",
                                    bytes, free));
        if (count * bytes < l2_factor * l2_bytes)
            run_.notes.push_back(fmt::format(
                "{} buffer sets of {} B are less than {} x L2: part of the inputs may come from L2", count,
                bytes, l2_factor));
        OperandSets sets(problem_, count);
        const StreamOwner stream;
        for (const Operand operand : {Operand::a, Operand::b})
            bench_->kernels().fill(
                stream, fill_arguments(problem_, operand, sets.view(operand), Fill::normal, options_.seed));
        stream.synchronize();
        return sets;
    }

    void time() {
        std::string missing = "not asked for";
        const CublasLt* rival = options_.baseline ? bench_->rival(problem_, missing) : nullptr;
        const OperandSets sets = make_sets();
        std::vector<TimedWork> works;
        const auto add = [&](std::string name, GemmLaunch launch, Role role) {
            works.push_back({std::move(name),
                             [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
                                 launch(stream, sets.data(Operand::a, set), sets.data(Operand::b, set),
                                        sets.data(Operand::c, set));
                             },
                             role});
        };
        for (std::size_t i = 0; i < launches_.size(); ++i) {
            const LadderRow& row = run_.rows[rows_[i]];
            add(row.name, launches_[i], row.rung && *row.rung <= Rung::shared ? Role::other : Role::leader);
        }
        const std::size_t ours = works.size();
        for (int index = 0; rival && index < rival->algorithms(); ++index)
            add(
                fmt::format("cuBLASLt {}", index),
                [rival, index](Stream stream, const void* a, const void* b, void* c) {
                    rival->launch(index, stream, a, b, c);
                },
                Role::rival);
        const std::vector<TimedResult> timed = time_all(works, sets.sets());
        set_rows(std::span(timed).first(ours), std::span(timed).subspan(ours));
        run_.baselines.missing = rival ? "" : missing;
        if (verifier_) verify_again();
    }

    std::vector<TimedResult> time_all(const std::vector<TimedWork>& works, std::int64_t sets) {
        say(fmt::format("timing {} candidates over {} buffer sets, {}", works.size(), sets,
                        name_of(options_.mode)));
        const Part part(run_.timings, fmt::format("time ({})", name_of(options_.mode)));
        TimingOptions timing = options_.timing;
        timing.mode = options_.mode;
        timing.sets = sets;
        timing.seed = options_.seed;
        timing.interrupted = options_.interrupted;
        return time_works(works, timing, bench_->kernels(), bench_->gpu(), bench_->device().l2_bytes);
    }

    void set_rows(std::span<const TimedResult> ours, std::span<const TimedResult> algorithms) {
        const int sms = bench_->kernels().sms();
        const Roofs roofs = roofs_of(options_.machine, measured(0).plan, sms);
        run_.baselines = baselines_of(problem_, options_.mode, algorithms, roofs, run_.notes);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            set_figures(measured(i), ours[i], roofs_of(options_.machine, measured(i).plan, sms));
            for (std::string& note : unchecked_roofs(options_.mode, ours[i], roofs))
                noted_.insert(std::move(note));
            const std::string words = clock_reason_words(ours[i].gpu.clock_reasons);
            if (!words.empty()) noted_.insert("the GPU held its clock back: " + words);
        }
    }

    void verify_again() {
        const Part part(run_.timings, "verify again");
        for (std::size_t i = 0; i < launches_.size(); ++i)
            verifier_->check_again(measured(i).verified, options_.seed + 1, launches_[i]);
    }

    const GemmProblem& problem_;
    const std::optional<GemmPlan>& plan_;
    const MeasureOptions& options_;
    LadderRun run_;
    std::unique_ptr<Bench> bench_;
    std::unique_ptr<GemmVerifier> verifier_;
    std::vector<std::size_t> rows_;  ///< of `launches_`
    std::vector<GemmLaunch> launches_;
    std::set<std::string> noted_;
};

}  // namespace

LadderRun measure_ladder(const GemmProblem& problem, const Machine& machine,
                         const std::optional<GemmPlan>& plan, const MeasureOptions& options) {
    return LadderBench(problem, machine, plan, options).run();
}

}  // namespace rooftile
