#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "cli/pictures.hpp"
#include "cli/suite_run.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/measure.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/tune/tune.hpp"

namespace rooftile::cli {
namespace {

int write_run(const MeasureRun& run, DocumentContext context, const MeasureFlags& flags, std::uint64_t seed) {
    context.gpu = GpuContext{run.gpu.gpu, run.gpu.driver, run.gpu.nvrtc, utc_now(), seed};
    context.kernel_hash = run.kernel_hash;
    const Format format = checked_format(flags.output);
    if (wants_pictures(flags.given)) write_pictures(flags.given, measurement_document(context, run.rows, {}, run.notes), context.command);
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
    const auto unbuilt = [](const Measurement& row) { return !row.built; };
    return verdict(std::any_of(run.rows.begin(), run.rows.end(), is_unproven),
                   std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

/// Throws RequestError where flags are given together that exclude each other.
void check_together(const Given& given) {
    if (given.has("suite"))
        for (const char* key : {"explain", "energy", "ablate", "svg", "html"})
            if (given.has(key)) throw RequestError(given.name(key) + " cannot be combined with --suite");
    for (const char* key : {"no_time", "debug"})
        if (given.has("ablate") && given.has(key))
            throw RequestError(given.name("ablate") + " and " + given.name(key) + " exclude each other");
}

int measure_one(const Operation& operation, const MeasureFlags& flags, const Invocation& invocation) {
    const Given& given = flags.given;
    refuse_suite_flags(flags);
    check_energy(operation, given);
    MeasureOptions options = measure_options(flags, operation, invocation.start);
    const Problem problem = problem_with_work(operation, given);
    const bool tuned = given.has("tuned");
    const Own request = operation.request(given, {.top = tuned ? tune_kept : 1, .buildable_only = true, .seed = options.seed});
    const auto [live, target] = live_target(given, options.device);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    PlanSet plans = derive_for(target, problem, request);
    keep_buildable(plans);
    if (plans.refusal) return report_refusal(plans, context, flags.output);
    if (tuned) take_stored_choice(plans, tune_place(options.device), given.has("top") ? plans.plans.size() : 1);
    options.machine = &live.machine;
    options.target = target.machine.get();
    note_interrupts();
    std::vector<MeasureTask> tasks;
    const Own more = operation.request(given, {.top = int(plans.plans.size()) + plans_behind, .buildable_only = true, .seed = options.seed});
    tasks.push_back({.plans = std::move(plans), .more = [&] { return derive_for(target, problem, more); }});
    return write_run(measure(std::move(tasks), options), context, flags, options.seed);
}

int measure_any(const Operation& operation, const Given& given, const OutputFlags& output,
                const Invocation& invocation) {
    checked_format(output);
    check_together(given);
    check_picture_files(given);
    Given explained = given;
    if (wants_pictures(given)) explained.add_default("explain", "");  // pictures show it
    const MeasureFlags flags(explained, output);
    try {
        return given.has("suite") ? measure_suite(operation, flags, invocation)
                                  : measure_one(operation, flags, invocation);
    } catch (const Error& error) {
        if (error.code() != ExitCode::no_gpu) throw;
        throw Error(error.code(), fmt::format("{}; `rooftile build {} ...` works here: it compiles the kernel", error.what(), operation.name()), error.detail());
    }
}

std::vector<Field> fields_of(const Operation& operation) {
    std::vector<Field> fields = joined_fields({operation.fields(), target_fields(), measure_fields(), picture_fields(true)});
    fields.push_back({"tuned", "", "Take the choice that `rooftile tune` kept of the problem, where there is one, as plan 1", "Measuring",
                      FieldKind::on});
    if (on_device(operation).has_parts())
        fields.push_back(
            {"ablate", "",
             "The same kernel without its loads, its products, its store, and what the miss goes with",
             "Measuring", FieldKind::on});
    return fields;
}

}  // namespace

void add_measure(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name()), example(operation->example());
        verbs.push_back(
            {.path = "measure " + name,
             .meaning = std::string(operation->meaning()),
             .fields = fields_of(*operation),
             .documents = Documents::all,
             .examples = fmt::format("Examples:\n  rooftile measure {0} {1}\n"
                                     "  rooftile measure {0} {1} --mode cold --top 3 --json\n"
                                     "  rooftile measure {0} --suite SUITE.toml --out {0}.jsonl\n",
                                     name, example),
             .synopsis = example,
             .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                 return measure_any(*operation, given, output, invocation);
             }});
    }
}

}  // namespace rooftile::cli
