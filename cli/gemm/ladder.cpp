#include "cli/gemm/verbs.hpp"
#include "rooftile/gemm/fields.hpp"
#include "cli/measure_flags.hpp"
#include "cli/target.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/interrupt.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/gemm/device/ladder_measure.hpp"
#include "rooftile/gemm/ladder_json.hpp"
#include "rooftile/gemm/ladder_text.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view default_shape = "4096x4096x4096";

/// What the rungs compute; the shape may be left out.
GemmProblem ladder_problem(const MeasureFlags& flags) {
    Given given = flags.given;
    if (!given.has("m") && !given.has("n") && !given.has("k")) given.add_default("shape", default_shape);
    const GemmProblem problem = gemm_problem(given);
    // What stops the first rung stops all: majors and leading dimensions.
    if (const std::string why = obstacle_of(Rung::naive, problem); !why.empty()) throw RequestError(why);
    return problem;
}

int write_ladder(const LadderRun& run, DocumentContext context, const MeasureFlags& flags,
                 std::uint64_t seed) {
    context.gpu = GpuContext{run.gpu, run.driver, run.nvrtc, utc_now(), seed};
    const Format format = checked_format(flags.output);
    if (format == Format::text) {
        const Terminal terminal = terminal_for(flags.output);
        std::string out = ladder_text(context, run, terminal);
        out += closing_text(run.notes, run.timings, flags, terminal);
        write_result(out, flags.output);
    } else {
        const Json document = ladder_document(context, run, flags.timings);
        write_result(document_text(document, format), flags.output);
    }
    const auto unbuilt = [](const LadderRow& row) { return !row.measured.built; };
    return verdict(!run.verified(), std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

int measure_ladder(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    const MeasureFlags flags(given, output);
    MeasureOptions options = measure_options(flags, gemm_operation(), invocation.start);
    const GemmProblem problem = ladder_problem(flags);
    const Own request = gemm_operation().request(given, {.top = 1, .buildable_only = true, .seed = options.seed});
    const auto [live, target] = live_target(given, options.device);
    options.machine = &live.machine;

    std::vector<std::string> notes;
    if (!target.note.empty()) notes.push_back(target.note);
    std::optional<GemmPlan> plan;
    const PlanSet plans = derive_for(target, {&gemm_operation(), Own::of(problem)}, request);
    if (plans.refusal) notes.push_back("no planned kernel next to the ladder: " + plans.refusal->message);
    else plan = plans.plans.front().own.as<GemmPlan>();

    note_interrupts();
    LadderRun run = rooftile::measure_ladder(problem, *target.machine, plan, options);
    run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
    return write_ladder(run, context_of(*target.machine, invocation.command), flags, options.seed);
}

/// Of a GEMM and of measuring, what the ladder takes too: it has its own kernels, and one problem.
std::vector<Field> ladder_fields() {
    std::vector<Field> fields = joined_fields({gemm_operation().fields(), target_fields(), measure_fields()});
    std::erase_if(fields, [](const Field& field) {
        for (const char* key : {"top", "sample", "orders", "suite", "filter", "max_seconds", "confirm",
                                "counters", "no_time", "explain", "energy"})
            if (field.key == key) return true;
        return false;
    });
    return fields;
}

int report_ladder(const Given& given, const OutputFlags& output, const Invocation&) {
    if (!given.has("file"))
        throw RequestError(
            "report ladder needs the file that `measure ladder --json` wrote: report ladder FILE");
    checked_format(output);
    const Json document = Json::parse(read_whole_file(given.text("file")), nullptr, false);
    if (document.is_discarded()) throw RequestError(fmt::format("{}: not JSON", given.text("file")));
    write_result(ladder_markdown(document), output);
    return int(ExitCode::done);
}

}  // namespace

void add_measure_ladder(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "measure ladder",
                     .meaning = "Six GEMM kernels from naive to full next to the planned one",
                     .fields = ladder_fields(),
                     .documents = Documents::all,
                     .examples = "Examples:\n"
                                 "  rooftile measure ladder\n"
                                 "  rooftile measure ladder --shape 8192x8192x8192 --json\n",
                     .synopsis = "--shape 4096x4096x4096",
                     .run = measure_ladder});
}

void add_report_ladder(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "report ladder",
                     .meaning = "The table of a ladder's run, in Markdown",
                     .fields = {{"file", "FILE", "What `measure ladder --json` wrote", "Files",
                                 FieldKind::positional}},
                     .documents = Documents::text_only,
                     .examples = {},
                     .synopsis = "FILE",
                     .run = report_ladder});
}

}  // namespace rooftile::cli
