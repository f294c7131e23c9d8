#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/fuse_arguments.hpp"
#include "cli/gemm_arguments.hpp"
#include "cli/interrupt.hpp"
#include "cli/ladder.hpp"
#include "cli/measure_flags.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/measurement_text.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 1;

constexpr std::string_view modes[] = {"cold", "sustained", "burst"};
constexpr std::string_view baselines[] = {"cublaslt", "none"};
constexpr std::int64_t largest_seed = (std::int64_t{1} << 53) - 1;  // JSON keeps it

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

int measure_gemm(const MeasureFlags& flags, const Invocation& invocation) {
    checked_format(flags.output);
    if (flags.ladder && !flags.suite.empty()) throw RequestError("--ladder and --suite exclude each other");
    if (flags.ladder || !flags.suite.empty())
        for (const auto& [name, given] :
             {std::pair{"--explain", flags.explain}, {"--energy", flags.energy}, {"--blame", flags.blame}})
            if (given)
                throw RequestError(
                    fmt::format("{} does not go with {}", name, flags.ladder ? "--ladder" : "--suite"));
    for (const auto& [name, given] : {std::pair{"--blame", flags.blame}, {"--ladder", flags.ladder}})
        if (given && flags.no_time)
            throw RequestError(fmt::format("{} and --no-time exclude each other", name));
    const Variants variants = variants_of(flags.variants, flags.gemm);
    if (flags.ladder && (variants.sample > 0 || !variants.orders.empty()))
        throw RequestError("--ladder has its own kernels: leave out --sample and --orders");
    if (flags.ladder) return measure_ladder(flags, invocation);
    if (!flags.suite.empty()) return measure_suite(flags, invocation);
    for (const auto& [name, value] :
         {std::pair{"--filter", &flags.filter}, {"--max-seconds", &flags.max_seconds}})
        if (!value->empty()) throw RequestError(fmt::format("{} needs --suite FILE", name));
    MeasureOptions options = measure_options(flags, invocation.start);
    const GemmProblem problem = problem_of(flags.gemm);
    GemmRequest request = request_of(flags.gemm, default_top);
    request.buildable_only = true;
    const auto [live, target] = live_target(flags.gemm, options.device);
    const DocumentContext context = context_of(target.machine, invocation.command);
    const auto outcome = derive_variants(target, problem, request, variants, options.seed);
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.output);
    options.machine = &live.machine;
    note_interrupts();
    MeasureRun run = measure(std::get<Plans>(outcome).plans, options);
    for (Measurement& row : run.rows) {
        if (flags.explain || flags.energy)
            row.explanation =
                explain(target.machine, row.plan, {.attainability = flags.explain, .energy = flags.energy});
        attribute(row, target.machine);
    }
    const auto& said = std::get<Plans>(outcome).notes;
    run.notes.insert(run.notes.begin(), said.begin(), said.end());
    return write_run(run, context, flags, options.seed);
}

}  // namespace

MeasureOptions measure_options(const MeasureFlags& flags, std::chrono::steady_clock::time_point start) {
    MeasureOptions options;
    options.mode = Mode(one_of("--mode", flags.mode, modes));
    options.baseline = one_of("--baseline", flags.baseline, baselines) == 0;
    options.counters = flags.counters;
    options.blame = flags.blame;
    options.time = !flags.no_time;
    options.seed = flags.seed.empty() ? fresh_seed()
                                      : std::uint64_t(whole_number("--seed", flags.seed, 0, largest_seed));
    if (!flags.rounds.empty()) options.timing.rounds = int(whole_number("--rounds", flags.rounds, 1, 1000));
    if (!flags.runoff.empty())
        options.timing.runoff.rounds = std::size_t(whole_number("--runoff", flags.runoff, 0, 1000));
    if (options.timing.runoff.rounds > 0 && options.mode == Mode::cold)
        throw RequestError("--runoff is of --mode sustained and burst: cold launches are many already");
    options.interrupted = interrupted;
    options.program_start = start;
    if (isatty(STDERR_FILENO)) options.progress = [](const std::string& line) { say(line); };
    return options;
}

LiveTarget live_target(const GemmFlags& flags, int device) {
    std::optional<Target> named;
    if (!flags.machine.empty()) named = target_of(flags);
    LiveMachine live = live_machine(device);
    return {std::move(live), named ? std::move(*named) : target_of(flags)};
}

std::string closing_text(const std::vector<std::string>& notes, const std::vector<Timing>& timings,
                         const MeasureFlags& flags, const Terminal& terminal) {
    std::string out;
    for (const std::string& note : notes)
        out += "\nnote  " + wrapped(displayable(note, terminal.utf8), terminal.prose() - 6, 6);
    if (!notes.empty()) out += "\n";
    if (flags.timings) out += "\n" + timings_text(timings, terminal);
    return out;
}

int verdict(bool wrong, bool unbuilt) {
    if (wrong) {
        say("verification failed: a result is wrong; its row says where");
        return int(ExitCode::verification_failed);
    }
    if (!unbuilt) return int(ExitCode::done);
    say("a kernel did not compile as planned; its row says why");
    return int(ExitCode::compile_failed);
}

void add_measure(CLI::App& app, Invocation& invocation) {
    CLI::App* measure = app.add_subcommand(
        "measure", "Run the planned kernel, prove its result right, time it beside cuBLASLt");
    measure->callback([&invocation, measure] {
        if (!measure->get_subcommands().empty()) return;
        invocation.run = []() -> int {
            throw RequestError("measure what? rooftile measure gemm --m M --n N --k K");
        };
    });
    auto flags = std::make_shared<MeasureFlags>();
    CLI::App* gemm = measure->add_subcommand("gemm", "A matrix product C = A B");
    add_gemm_flags(*gemm, flags->gemm, default_top);
    add_variant_flags(*gemm, flags->variants);
    const char* group = "Measuring";
    auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        gemm->add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group(group);
    };
    add("--mode", flags->mode, "MODE", "sustained (default), cold or burst");
    add("--baseline", flags->baseline, "NAME", "cublaslt (default) or none");
    add("--seed", flags->seed, "N",
        "Of the random inputs and of --sample; default: a new one, which the document names");
    add("--rounds", flags->rounds, "N", "Blocks of each candidate; default 7, in a suite 4");
    add("--runoff", flags->runoff, "N",
        "Blocks at most that plan 1 and the fastest get anew; default 0, in a suite 12");
    add("--suite", flags->suite, "FILE",
        "All problems of FILE; rows are appended to --out, which it resumes from");
    add("--filter", flags->filter, "TEXT",
        "Of a suite: only problems whose \"model layer MxNxK\" holds TEXT");
    add("--max-seconds", flags->max_seconds, "S", "Of a suite: stop in order before S seconds have passed");
    gemm->add_flag("--ladder", flags->ladder, "Six kernels from naive to full beside the planned one")
        ->group(group);
    gemm->add_flag("--counters", flags->counters,
                   "Hardware counters of each plan and of cuBLASLt's best, after they were timed")
        ->group(group);
    gemm->add_flag("--explain", flags->explain,
                   "How the predicted time comes about, and what the measured one leaves unexplained")
        ->group(group);
    gemm->add_flag("--energy", flags->energy, "Joules of a launch by term, predicted beside measured")
        ->group(group);
    gemm->add_flag("--blame", flags->blame,
                   "The same kernel without its loads, its products, its store, and what the miss goes with")
        ->group(group);
    gemm->add_flag("--no-time", flags->no_time, "Verify, and count with --counters, but time nothing")
        ->group(group);
    gemm->add_flag("--timings", flags->timings, "Show what each part of the run took")->group(group);
    add_output_flags(*gemm, flags->output, Documents::all);
    gemm->footer(
        "Examples:\n"
        "  rooftile measure gemm --shape 8192x8192x8192\n"
        "  rooftile measure gemm --shape 4096x14336x4096 --mode cold --top 3 --json\n"
        "  rooftile measure gemm --ladder --shape 4096x4096x4096\n"
        "  rooftile measure gemm --suite bench/suites/gemm.toml --out gemm.jsonl\n");
    gemm->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return measure_gemm(*flags, invocation); };
    });
    add_measure_fuse(*measure, invocation);
}

}  // namespace rooftile::cli
