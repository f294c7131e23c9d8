#include "cli/ladder.hpp"
#include "cli/planning.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/interrupt.hpp"
#include "cli/values.hpp"
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
    GemmFlags gemm = flags.gemm;
    if (gemm.shape.empty() && gemm.m.empty() && gemm.n.empty() && gemm.k.empty()) gemm.shape = default_shape;
    const GemmProblem problem = problem_of(gemm);
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
    const std::pair<const char*, bool> others[] = {{"--counters", flags.counters},
                                                   {"--filter", !flags.filter.empty()},
                                                   {"--max-seconds", !flags.max_seconds.empty()},
                                                   {"--top", !flags.gemm.top.empty()}};
    for (const auto& [name, given] : others)
        if (given) throw RequestError(fmt::format("{} does not go with --ladder", name));
    MeasureOptions options = measure_options(flags, invocation.start);
    const GemmProblem problem = ladder_problem(flags);
    GemmRequest request = request_of(flags.gemm, 1);
    request.top = 1;
    request.buildable_only = true;
    const auto [live, target] = live_target(flags.gemm, options.device);
    options.machine = &live.machine;

    std::vector<std::string> notes;
    if (!target.note.empty()) notes.push_back(target.note);
    std::optional<GemmPlan> plan;
    const auto outcome = derive_for(target, problem, request);
    if (const auto* plans = std::get_if<Plans>(&outcome)) plan = plans->plans.front();
    else notes.push_back("no planned kernel beside the ladder: " + std::get<Infeasible>(outcome).message);

    note_interrupts();
    LadderRun run = rooftile::measure_ladder(problem, target.machine, plan, options);
    run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
    return write_ladder(run, context_of(target.machine, invocation.command), flags, options.seed);
}

void add_report_ladder(CLI::App& report, Invocation& invocation) {
    auto file = std::make_shared<std::string>();
    auto output = std::make_shared<OutputFlags>();
    CLI::App* ladder = report.add_subcommand("ladder", "The table of a ladder's run, in Markdown");
    ladder->add_option("file", *file, "What `measure gemm --ladder --json` wrote")
        ->type_name("FILE")
        ->check(refuse_empty);
    add_output_flags(*ladder, *output, Documents::text_only);
    ladder->callback([&invocation, file, output] {
        invocation.run = [file, output] {
            if (file->empty())
                throw RequestError(
                    "report ladder needs the file that `measure gemm --ladder --json` wrote: report ladder "
                    "FILE");
            checked_format(*output);
            const Json document = Json::parse(read_whole_file(*file), nullptr, false);
            if (document.is_discarded()) throw RequestError(fmt::format("{}: not JSON", *file));
            write_result(ladder_markdown(document), *output);
            return int(ExitCode::done);
        };
    });
}

}  // namespace rooftile::cli
