#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fuse_arguments.hpp"
#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/fuse/json.hpp"
#include "rooftile/fuse/measurement_report.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 1;

struct MeasureFuseFlags {
    FuseFlags fuse;
    MeasureFlags measure;  ///< mode, seed, rounds, output
};

int measure_fuse(const MeasureFuseFlags& flags, const Invocation& invocation) {
    const Format format = checked_format(flags.measure.output);
    if (!flags.measure.suite.empty()) return measure_fuse_suite(flags.fuse, flags.measure, invocation);
    for (const auto& [name, value] :
         {std::pair{"--filter", &flags.measure.filter}, {"--max-seconds", &flags.measure.max_seconds}})
        if (!value->empty()) throw RequestError(fmt::format("{} needs --suite FILE", name));
    MeasureOptions options = measure_options(flags.measure, invocation.start);
    options.baseline = flags.measure.baseline != "none";
    const FuseProblem problem = problem_of(flags.fuse);
    const FuseRequest request = request_of(flags.fuse, default_top);
    const auto [live, target] = live_target(flags.fuse.machine, options.device);
    DocumentContext context = context_of(target.machine, invocation.command);
    const auto outcome = derive_for(target, problem, request);
    if (const auto* infeasible = std::get_if<FuseInfeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.measure.output);
    options.machine = &live.machine;
    note_interrupts();
    FuseRun run = measure(std::get<FusePlans>(outcome).plans, target.machine, options);
    if (!target.note.empty()) run.notes.insert(run.notes.begin(), target.note);
    context.gpu = GpuContext{run.gpu, run.driver, run.nvrtc, utc_now(), options.seed};
    if (format == Format::text) {
        const Terminal terminal = terminal_for(flags.measure.output);
        write_result(measurement_text(context, run, terminal)
                         + closing_text(run.notes, run.timings, flags.measure, terminal),
                     flags.measure.output);
    } else {
        write_result(document_text(measurement_document(context, run), format), flags.measure.output);
    }
    const auto wrong = [](const FuseMeasurement& row) { return row.verified.checked && !row.verified.ok(); };
    const auto unbuilt = [](const FuseMeasurement& row) { return row.registers == 0; };
    return verdict(std::any_of(run.rows.begin(), run.rows.end(), wrong),
                   std::any_of(run.rows.begin(), run.rows.end(), unbuilt));
}

}  // namespace

void add_measure_fuse(CLI::App& measure, Invocation& invocation) {
    auto flags = std::make_shared<MeasureFuseFlags>();
    CLI::App* fuse = measure.add_subcommand("fuse", "A chain of operators as one kernel");
    add_fuse_flags(*fuse, flags->fuse, default_top);
    auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        fuse->add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group("Measuring");
    };
    MeasureFlags& m = flags->measure;
    add("--mode", m.mode, "NAME", "cold, sustained (default) or burst");
    add("--rounds", m.rounds, "N", "Blocks of each competitor; default 7, in a suite 4");
    add("--runoff", m.runoff, "N",
        "Blocks at most that plan 1 and the fastest get anew; default 0, in a suite 12");
    add("--seed", m.seed, "N", "Of inputs and orders; default: a new one");
    add("--suite", m.suite, "FILE",
        "All problems of FILE; rows are appended to --out, which it resumes from");
    add("--filter", m.filter, "TEXT",
        "Of a suite: only problems whose \"group ROWSxCOLUMNS type\" holds TEXT");
    add("--max-seconds", m.max_seconds, "S", "Of a suite: stop in order before S seconds have passed");
    fuse->add_flag_callback(
            "--no-baseline", [flags] { flags->measure.baseline = "none"; },
            "Leave out the copies and the operators one by one")
        ->group("Measuring");
    fuse->add_flag("--timings", m.timings, "Show where the run's own time went")->group("Output");
    add_output_flags(*fuse, m.output, Documents::all);
    fuse->footer(
        "Examples:\n"
        "  rooftile measure fuse \"y = gelu(x)\" --tensor \"x:bf16[16384,16384]\" --mode cold\n"
        "  rooftile measure fuse \"y = softmax(x)\" --tensor \"x:bf16[16384,4096]\" --top 8 --json\n"
        "  rooftile measure fuse --suite bench/suites/memory.toml --out memory.jsonl\n");
    fuse->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return measure_fuse(*flags, invocation); };
    });
}

}  // namespace rooftile::cli
