#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/device/ladder_measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <variant>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/device/bench.hpp"

namespace rooftile {
namespace {

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
    row.measured = gemm_row(plan);
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
        return std::move(run_);
    }

  private:
    Measurement& measured(std::size_t launch) { return run_.rows[rows_[launch]].measured; }

    Built build_row(const LadderRow& row, const std::string& arch) const {
        if (!row.obstacle.empty()) return {};
        try {
            if (row.rung) return compile_cached(ladder_source(*row.rung, problem_.a_type, arch));
            return compile(*plan_);
        } catch (const Error& error) { return error; }
    }

    void build(const std::string& arch) {
        if (options_.progress) options_.progress("compiling the ladder");
        for (LadderRow& row : run_.rows) {
            if (row.rung && row.obstacle.empty()) row.obstacle = arch_obstacle(*row.rung, arch);
            if (!row.rung) continue;
            GemmPlan rung;
            rung.problem = problem_;
            // Which family's peak is the roof of every row.
            rung.config.kernel = find_gemm_kernel(arch == "sm_90" ? "sm90_gemm" : "sm80_gemm");
            row.measured = gemm_row(std::move(rung), options_.mode);
        }
        std::vector<Built> built(run_.rows.size());
        {
            const Part part(run_.timings, "compile");
            auto own = std::async(std::launch::async, [&] { return compile_measure_kernels(arch); });
            in_parallel(built.size(), 0, [&](std::size_t i) { built[i] = build_row(run_.rows[i], arch); });
            bench_ = std::make_unique<Bench>(options_, own.get());
            gemm_ = std::make_unique<GemmBench>(*bench_);
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
        bench_->say(fmt::format("verifying {} kernels", launches_.size()));
        const Part part(run_.timings, "verify");
        verifier_ = gemm_->verifier(problem_, launches_.size());
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
        return gemm_->operand_sets(problem_, run_.notes);
    }

    void time() {
        std::string missing = "not asked for";
        const CublasLt* rival = options_.baseline ? gemm_->rival(problem_, missing) : nullptr;
        const OperandSets sets = make_sets();
        std::vector<TimedWork> works;
        for (std::size_t i = 0; i < launches_.size(); ++i) {
            const LadderRow& row = run_.rows[rows_[i]];
            works.push_back({row.name, on(sets, launches_[i]),
                             row.rung && *row.rung <= Rung::shared ? Role::other : Role::leader});
        }
        const std::size_t ours = works.size();
        add_rivals(works, rival, sets);
        const std::vector<TimedResult> timed = bench_->time(works, sets.sets(), 0, run_.timings);
        set_rows(std::span(timed).first(ours), std::span(timed).subspan(ours));
        run_.baseline_missing = rival ? "" : missing;
        if (verifier_) verify_again();
    }

    void set_rows(std::span<const TimedResult> ours, std::span<const TimedResult> algorithms) {
        const int sms = bench_->kernels().sms();
        const Roofs roofs = baseline_roofs_of(options_.machine, problem_, sms);
        run_.baselines = cublaslt_baselines(problem_, options_.mode, algorithms, roofs, run_.notes);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            Measurement& m = measured(i);
            set_times(m, ours[i]);
            set_figures(m, ours[i], roofs_of(options_.machine, gemm_plan(m), sms));
            note_timed(run_.notes, options_.mode, ours[i], roofs);
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
    std::unique_ptr<GemmBench> gemm_;
    std::unique_ptr<GemmVerifier> verifier_;
    std::vector<std::size_t> rows_;  ///< of `launches_`
    std::vector<GemmLaunch> launches_;
};

}  // namespace

LadderRun measure_ladder(const GemmProblem& problem, const Machine& machine,
                         const std::optional<GemmPlan>& plan, const MeasureOptions& options) {
    return LadderBench(problem, machine, plan, options).run();
}

}  // namespace rooftile
