#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/gemm_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/kernel/driver.hpp"
#include "rooftile/report/measurement_text.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 1;

struct MeasureFlags {
    GemmFlags gemm;
    OutputFlags output;
    std::string mode = "sustained", baseline = "cublaslt", seed, suite;
    bool timings = false, counters = false;
};

int measure_gemm(const MeasureFlags& flags, const std::string& command) {
    if (!flags.suite.empty()) not_available("--suite");
    if (flags.counters) not_available("--counters");
    static constexpr std::string_view modes[] = {"cold", "sustained", "burst"};
    static constexpr std::string_view baselines[] = {"cublaslt", "none"};
    checked_format(flags.output);
    one_of("--mode", flags.mode, modes);
    one_of("--baseline", flags.baseline, baselines);
    problem_of(flags.gemm);
    request_of(flags.gemm, default_top);
    Driver::instance();
    (void)command;
    throw Error(ExitCode::internal, "measuring is not connected yet");
}

}  // namespace

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
    const char* group = "Measuring";
    auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        gemm->add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group(group);
    };
    add("--mode", flags->mode, "MODE", "sustained (default), cold or burst");
    add("--baseline", flags->baseline, "NAME", "cublaslt (default) or none");
    add("--seed", flags->seed, "N", "Of the random inputs; default 1");
    add("--suite", flags->suite, "FILE", "Many problems (not available yet)");
    gemm->add_flag("--counters", flags->counters, "Hardware counters (not available yet)")->group(group);
    gemm->add_flag("--timings", flags->timings, "Show what each part of the run took")->group(group);
    add_output_flags(*gemm, flags->output, Documents::all);
    gemm->footer(
        "Examples:\n"
        "  rooftile measure gemm --shape 8192x8192x8192\n"
        "  rooftile measure gemm --shape 4096x14336x4096 --mode cold --top 3 --json\n");
    gemm->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return measure_gemm(*flags, invocation.command); };
    });
}

}  // namespace rooftile::cli
