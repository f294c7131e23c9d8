#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/gemm/verbs.hpp"
#include "cli/gemm/measure_suite.hpp"
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/explanation.hpp"
#include "cli/interrupt.hpp"
#include "cli/gemm/ladder.hpp"
#include "cli/measure_flags.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/measurement_text.hpp"

namespace rooftile::cli {
namespace {

int write_run(const MeasureRun& run, DocumentContext context, const MeasureFlags& flags, std::uint64_t seed) {
    context.gpu = GpuContext{run.gpu, run.driver, run.nvrtc, utc_now(), seed};
    context.kernel_hash = run.kernel_hash;
    const Format format = checked_format(flags.output);
    if (format == Format::text) {
        const Terminal terminal = terminal_for(flags.output);
        write_result(measurement_text(context, run.rows, terminal)
                         + closing_text(run.notes, run.timings, flags, terminal),
                     flags.output);
    } else {
        const auto timings = flags.timings ? run.timings : std::vector<Timing>();
        write_result(document_text(measurement_document(context, run.rows, timings, run.notes), format),
                     flags.output);
    }
    const auto wrong = [](const Measurement& row) { return row.built && !row.verified.ok(); };
    const auto unbuilt = [](const Measurement& row) { return !row.built; };
    return verdict(std::any_of(run.rows.begin(), run.rows.end(), wrong),
                   std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

/// Throws RequestError where flags are given together that exclude each other.
void check_together(const Given& given) {
    const bool ladder = given.has("ladder"), suite = given.has("suite");
    if (ladder && suite) throw RequestError("--ladder and --suite exclude each other");
    if (ladder || suite)
        for (const char* key : {"explain", "energy", "blame"})
            if (given.has(key))
                throw RequestError(fmt::format("{} does not go with {}", given.name(key), ladder ? "--ladder" : "--suite"));
    for (const char* key : {"blame", "ladder"})
        if (given.has(key) && given.has("no_time"))
            throw RequestError(fmt::format("{} and --no-time exclude each other", given.name(key)));
    if (ladder && (given.has("sample") || given.has("orders")))
        throw RequestError("--ladder has its own kernels: leave out --sample and --orders");
}

int measure_gemm(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_together(given);
    const MeasureFlags flags(given, output);
    if (given.has("ladder")) return measure_ladder(flags, invocation);
    if (given.has("suite")) return measure_gemm_suite(flags, invocation);
    refuse_suite_flags(flags);
    MeasureOptions options = gemm_measure_options(flags, invocation);
    const Problem problem = gemm_operation().problem(given);
    const Own request = gemm_operation().request(given, {.top = 1, .buildable_only = true, .seed = options.seed});
    const auto [live, target] = live_target(given, options.device);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return report_refusal(plans, context, output);
    options.machine = &live.machine;
    note_interrupts();
    MeasureRun run = measure(typed_plans(plans), options);
    for (Measurement& row : run.rows) {
        const bool steps = given.has("explain"), energy = given.has("energy");
        if (steps || energy)
            row.explanation = explain(*target.machine, row.plan, {.attainability = steps, .energy = energy});
        attribute(row, *target.machine);
    }
    run.notes.insert(run.notes.begin(), plans.notes.begin(), plans.notes.end());
    return write_run(run, context, flags, options.seed);
}

}  // namespace

MeasureOptions gemm_measure_options(const MeasureFlags& flags, const Invocation& invocation) {
    MeasureOptions options = measure_options(flags, gemm_operation(), invocation.start);
    options.counters = flags.given.has("counters");
    options.blame = flags.given.has("blame");
    options.time = !flags.given.has("no_time");
    return options;
}

std::vector<GemmPlan> typed_plans(const PlanSet& plans) {
    std::vector<GemmPlan> out;
    for (const Plan& plan : plans.plans) out.push_back(plan.own.as<GemmPlan>());
    return out;
}

void add_gemm_measure(std::vector<Verb>& verbs) {
    const char* group = "Measuring";
    const Field own[] = {
        {"ladder", "", "Six kernels from naive to full beside the planned one", group, FieldKind::on},
        {"counters", "", "Hardware counters of each plan and of cuBLASLt's best, after they were timed", group,
         FieldKind::on},
        {"explain", "", "How the predicted time comes about, and what the measured one leaves unexplained", group,
         FieldKind::on},
        {"energy", "", "Joules of a launch by term, predicted beside measured", group, FieldKind::on},
        {"blame", "", "The same kernel without its loads, its products, its store, and what the miss goes with",
         group, FieldKind::on},
        {"no_time", "", "Verify, and count with --counters, but time nothing", group, FieldKind::on}};
    verbs.push_back(
        {.path = "measure gemm",
         .meaning = std::string(gemm_operation().meaning()),
         .fields = joined_fields({gemm_operation().fields(), target_fields(), measure_fields(), own}),
         .documents = Documents::all,
         .examples = "Examples:\n"
                     "  rooftile measure gemm --shape 8192x8192x8192\n"
                     "  rooftile measure gemm --shape 4096x14336x4096 --mode cold --top 3 --json\n"
                     "  rooftile measure gemm --ladder --shape 4096x4096x4096\n"
                     "  rooftile measure gemm --suite bench/suites/gemm.toml --out gemm.jsonl\n",
         .synopsis = std::string(gemm_operation().example()),
         .run = measure_gemm});
}

}  // namespace rooftile::cli
