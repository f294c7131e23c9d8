#include "cli/gemm/verbs.hpp"
#include "cli/gemm/measure_suite.hpp"
#include "rooftile/gemm/fields.hpp"
#include "cli/gemm/ladder.hpp"

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
        write_result(format == Format::csv ? ladder_csv(document) : document_text(document, format),
                     flags.output);
    }
    const auto unbuilt = [](const LadderRow& row) { return !row.measured.built; };
    return verdict(!run.verified(), std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

}  // namespace

int measure_ladder(const MeasureFlags& flags, const Invocation& invocation) {
    for (const char* key : {"counters", "filter", "max_seconds", "top"})
        if (flags.given.has(key))
            throw RequestError(fmt::format("{} does not go with --ladder", flags.given.name(key)));
    MeasureOptions options = gemm_measure_options(flags, invocation);
    const GemmProblem problem = ladder_problem(flags);
    const Own request =
        gemm_operation().request(flags.given, {.top = 1, .buildable_only = true, .seed = options.seed});
    const auto [live, target] = live_target(flags.given, options.device);
    options.machine = &live.machine;

    std::vector<std::string> notes;
    if (!target.note.empty()) notes.push_back(target.note);
    std::optional<GemmPlan> plan;
    const PlanSet plans = derive_for(target, {&gemm_operation(), Own::of(problem)}, request);
    if (plans.refusal) notes.push_back("no planned kernel beside the ladder: " + plans.refusal->message);
    else plan = typed_plans(plans).front();

    note_interrupts();
    LadderRun run = rooftile::measure_ladder(problem, *target.machine, plan, options);
    run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
    return write_ladder(run, context_of(*target.machine, invocation.command), flags, options.seed);
}

namespace {

int report_ladder(const Given& given, const OutputFlags& output, const Invocation&) {
    if (!given.has("file"))
        throw RequestError(
            "report ladder needs the file that `measure gemm --ladder --json` wrote: report ladder FILE");
    checked_format(output);
    const Json document = Json::parse(read_whole_file(given.text("file")), nullptr, false);
    if (document.is_discarded()) throw RequestError(fmt::format("{}: not JSON", given.text("file")));
    write_result(ladder_markdown(document), output);
    return int(ExitCode::done);
}

}  // namespace

void add_report_ladder(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "report ladder",
                     .meaning = "The table of a ladder's run, in Markdown",
                     .fields = {{"file", "FILE", "What `measure gemm --ladder --json` wrote", "Files",
                                 FieldKind::positional}},
                     .documents = Documents::text_only,
                     .examples = {},
                     .synopsis = "FILE",
                     .run = report_ladder});
}

}  // namespace rooftile::cli
