#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/fuse/verbs.hpp"
#include "cli/target.hpp"
#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/json.hpp"
#include "rooftile/fuse/measurement_report.hpp"

namespace rooftile::cli {
namespace {

int measure_fuse(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const MeasureFlags flags(given, output);
    if (given.has("suite")) return measure_fuse_suite(flags, invocation);
    refuse_suite_flags(flags);
    MeasureOptions options = measure_options(flags, fuse_operation(), invocation.start);
    const Problem problem = fuse_operation().problem(given);
    const Own request = fuse_operation().request(given, {.top = 1});
    const auto [live, target] = live_target(given, options.device);
    DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return report_refusal(plans, context, output);
    options.machine = &live.machine;
    note_interrupts();
    FuseRun run = measure(fuse_plans(plans), *target.machine, options);
    if (!target.note.empty()) run.notes.insert(run.notes.begin(), target.note);
    context.gpu = GpuContext{run.gpu, run.driver, run.nvrtc, utc_now(), options.seed};
    if (format == Format::text) {
        const Terminal terminal = terminal_for(output);
        write_result(measurement_text(context, run, terminal) + closing_text(run.notes, run.timings, flags, terminal),
                     output);
    } else {
        write_result(document_text(measurement_document(context, run), format), output);
    }
    const auto wrong = [](const FuseMeasurement& row) { return row.verified.checked && !row.verified.ok(); };
    const auto unbuilt = [](const FuseMeasurement& row) { return row.registers == 0; };
    return verdict(std::any_of(run.rows.begin(), run.rows.end(), wrong),
                   std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

}  // namespace

std::vector<FusePlan> fuse_plans(const PlanSet& plans) {
    std::vector<FusePlan> out;
    for (const Plan& plan : plans.plans) out.push_back(plan.own.as<FusePlan>());
    return out;
}

void add_fuse_measure(std::vector<Verb>& verbs) {
    verbs.push_back(
        {.path = "measure fuse",
         .meaning = std::string(fuse_operation().meaning()),
         .fields = joined_fields({fuse_operation().fields(), target_fields(), measure_fields()}),
         .documents = Documents::all,
         .examples =
             "Examples:\n"
             "  rooftile measure fuse \"y = gelu(x)\" --tensor \"x:bf16[16384,16384]\" --mode cold\n"
             "  rooftile measure fuse \"y = softmax(x)\" --tensor \"x:bf16[16384,4096]\" --top 8 --json\n"
             "  rooftile measure fuse --suite bench/suites/memory.toml --out memory.jsonl\n",
         .synopsis = std::string(fuse_operation().example()),
         .run = measure_fuse});
}

}  // namespace rooftile::cli
