#include "rooftile/measure/source_measure.hpp"

#include <fmt/core.h>

#include <utility>

#include "rooftile/core/operation.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/disassemble.hpp"

namespace rooftile {
namespace {

CodeFacts facts_of(const CompiledKernel& kernel) {
    const KernelCode& code = kernel.code();
    CodeFacts facts;
    facts.entry = code.lowered_name;
    facts.registers = code.entry.registers;
    facts.spill_store_bytes = code.entry.spill_store_bytes;
    facts.spill_load_bytes = code.entry.spill_load_bytes;
    facts.stack_bytes = code.entry.stack_bytes;
    facts.shared_bytes = kernel.shared_bytes();
    const auto sass = disassemble(code.cubin);
    facts.from_sass = sass.has_value();
    facts.accesses =
        sass ? sass_accesses(*sass, code.lowered_name) : ptx_accesses(kernel.ptx(), code.lowered_name);
    return facts;
}

double total_threads(const Launch& l) {
    return double(l.grid_x) * l.grid_y * l.grid_z * l.block_x * l.block_y * l.block_z;
}

double output_elements(const Problem& problem) {
    double elements = 0;
    for (const TensorInfo& tensor : problem.operation->tensors(problem)) {
        if (tensor.role != TensorRole::out) continue;
        double all = 1;
        for (const Extent& extent : tensor.extents) all *= double(extent.most);
        elements += all;
    }
    return elements;
}

/// What else the verification saw beside the first failure. Outputs hold NaN before the random case: one that is left there was most
/// likely never written. The reference reads the inputs as the launch left them.
void explain_failure(Measurement& row, const SourceRequest& request) {
    std::string& failure = row.verified.failure;
    if (row.verified.guards == false && failure.find("elements wrong") != std::string::npos)
        failure += "; it also changed an input or wrote outside its outputs";
    if (row.verified.random == false && failure.find("nan, expected") != std::string::npos)
        failure += fmt::format("; outputs hold NaN before the launch: does {} reach every element?",
                               launch_text(request.launch));
}

/// The user's kernel, then the one that is derived, where there is one; why not in the notes.
MeasureTask task_of(const SourceRequest& request, const std::shared_ptr<const Machine>& machine) {
    const Operation& operation = *request.problem.operation;
    PlanSet plans =
        operation.derive(machine, request.problem,
                         operation.request(Given(Given::Named::by_key), {.top = 1, .buildable_only = true}));
    keep_buildable(plans);
    if (plans.refusal)
        plans.notes.push_back("no derived kernel beside: "
                              + std::exchange(plans.refusal, std::nullopt)->message);
    for (Plan& plan : plans.plans) ++plan.rank;
    plans.plans.insert(plans.plans.begin(), source_plan(request));
    MeasureTask task;
    task.roles.assign(plans.plans.size(), Role::leader);  // both in every round
    task.plans = std::move(plans);
    return task;
}

}  // namespace

SourceRun measure_source(const SourceRequest& request, const std::shared_ptr<const Machine>& machine,
                         MeasureOptions options) {
    const CompiledKernel user =
        compile_source_kernel(request, Driver::instance().device(options.device).arch());
    options.target = machine.get();
    options.compile = [&](const Plan& plan) { return plan.own ? compile(plan) : user; };
    SourceRun out;
    std::vector<MeasureTask> tasks;
    tasks.push_back(task_of(request, machine));
    if (const auto unfused = find_as<Record>(tasks.front().plans.totals, "unfused"))
        if (const auto kernels = find_as<std::int64_t>(*unfused, "kernels")) out.report.launches["unfused"] = *kernels;
    for (const OtherTime& other : request.others)
        if (other.launches) out.report.launches[other.key] = *other.launches;
    out.run = measure(std::move(tasks), options);
    out.report.file = request.path;
    out.report.rows = std::move(out.run.rows);
    out.report.notes = out.run.notes;
    explain_failure(out.report.rows.front(), request);
    for (Measurement& row : out.report.rows)
        for (const OtherTime& other : request.others)
            row.baselines.push_back({.key = other.key, .name = other.name, .time_us = other.us, .same_work = true});
    for (const Measurement& row : out.report.rows) {
        if (row.plan.own) {
            const CompiledOutcome derived = compile_outcome(row.plan);  // from the cache
            const auto* kernel = std::get_if<CompiledKernel>(&derived);
            out.report.codes.push_back(kernel ? facts_of(*kernel) : CodeFacts());
            continue;
        }
        CodeFacts facts = facts_of(user);
        facts.entry = request.entry;
        facts.launch = launch_text(request.launch);
        facts.elements_per_thread = output_elements(request.problem) / total_threads(request.launch);
        out.report.codes.push_back(std::move(facts));
    }
    return out;
}

}  // namespace rooftile
