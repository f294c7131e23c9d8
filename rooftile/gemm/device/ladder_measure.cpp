#include "rooftile/gemm/device/ladder_measure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <optional>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/problem_bench.hpp"

namespace rooftile {
namespace {

LadderRow row_of(Rung rung, const GemmProblem& problem, const Machine& machine) {
    LadderRow row;
    row.rung = rung;
    row.name = label_of(rung);
    row.adds = adds_of(rung);
    row.prediction = predict_rung(machine, rung, problem);
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
    row.prediction.reason = "the plan's own; rooftile plan gemm --explain=all shows each step";
    row.measured = gemm_row(plan);
    return row;
}

/// The six rungs and the plan, with what stops them on a GPU of `arch`.
std::vector<LadderRow> rows_of(const GemmProblem& problem, const Machine& machine,
                               const std::optional<GemmPlan>& plan, const std::string& arch, Mode mode) {
    std::vector<LadderRow> rows;
    for (int i = 0; i < rung_count; ++i) {
        LadderRow& row = rows.emplace_back(row_of(static_cast<Rung>(i), problem, machine));
        if (row.obstacle.empty()) row.obstacle = arch_obstacle(*row.rung, arch);
        GemmPlan rung;
        rung.problem = problem;
        rung.rank = i + 1;
        const LadderConfig config = ladder_config(*row.rung);
        rung.resources.threads = config.threads();
        rung.resources.shared_bytes = config.shared_bytes();
        // Which family's peak is the roof of every row.
        rung.config.kernel = find_gemm_kernel(arch == "sm_90" ? "sm90_gemm" : "sm80_gemm");
        row.measured = gemm_row(std::move(rung), mode);
    }
    if (plan) rows.push_back(row_of(*plan));
    rows.back().measured.mode = mode;
    return rows;
}

CompiledOutcome compile_row(const LadderRow& row, const std::string& arch) {
    try {
        const Plan& plan = row.measured.plan;
        if (!row.rung) return compile(plan);
        return compiled(plan, compile_rung(*row.rung, plan.own.as<GemmPlan>(), arch));
    } catch (const Error& error) { return error; }
}

/// Throws what is no compiler's word on one kernel, and that too where there is no other kernel.
void throw_faults(const std::vector<CompiledOutcome>& kernels) {
    const auto failed = [](const CompiledOutcome& kernel) { return std::holds_alternative<Error>(kernel); };
    const bool all = std::all_of(kernels.begin(), kernels.end(), failed);
    for (const CompiledOutcome& kernel : kernels) {
        const auto* error = std::get_if<Error>(&kernel);
        if (error && (all || error->code() != ExitCode::compile_failed)) throw *error;
    }
}

}  // namespace

LadderRun measure_ladder(const GemmProblem& problem, const Machine& machine,
                         const std::optional<GemmPlan>& plan, const MeasureOptions& options) {
    LadderRun run;
    run.problem = problem;
    run.mode = options.mode;
    run.timings.push_back({"before measuring", seconds_since(options.program_start)});
    const std::string arch = Driver::instance().device(options.device).arch();
    run.rows = rows_of(problem, machine, plan, arch, options.mode);

    MeasuredProblem measured;
    std::vector<LadderRow*> rows;  // that `measured` holds
    for (LadderRow& row : run.rows) {
        if (!row.obstacle.empty()) continue;
        rows.push_back(&row);
        measured.rows.push_back(row.measured);
        measured.task.roles.push_back(row.rung && *row.rung <= Rung::shared ? Role::other : Role::leader);
    }
    if (options.progress) options.progress("compiling the ladder");
    std::vector<CompiledOutcome> kernels(rows.size(), Error(ExitCode::internal, "not compiled"));
    auto compiled = std::async(std::launch::async, [&] {
        in_parallel(rows.size(), 0, [&](std::size_t i) { kernels[i] = compile_row(*rows[i], arch); });
    });
    std::unique_ptr<Context> context;
    const std::unique_ptr<Bench> bench = start_bench(options, arch, context, run.timings);
    {
        const Part part(run.timings, "compile the ladder (beside the above)");
        compiled.get();
    }
    throw_faults(kernels);
    measured.task.plans.problem = {&gemm_operation(), Own::of(problem)};
    const auto trial = on_device(gemm_operation()).prepare(measured.task.plans.problem, options, 0);
    measure_problem(*bench, measured, *trial, kernels);

    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i]->measured = std::move(measured.rows[i]);
        if (!run.baselines.empty() || rows[i]->measured.baselines.empty()) continue;
        run.baselines = rows[i]->measured.baselines;
        run.baseline_missing = rows[i]->measured.baseline_missing;
    }
    run.timings.insert(run.timings.end(), measured.timings.begin(), measured.timings.end());
    run.notes = std::move(measured.notes);
    const RunningGpu gpu = bench->running();
    run.gpu = gpu.gpu, run.driver = gpu.driver, run.nvrtc = gpu.nvrtc;
    return run;
}

}  // namespace rooftile
