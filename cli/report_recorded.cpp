#include "cli/report_recorded.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/predictions.hpp"
#include "rooftile/gemm/traffic_report.hpp"

namespace rooftile::cli {
namespace {

struct RecordedFlags {
    OutputFlags output;
    std::string file, machine;
    bool require = false;
};

int finish(const RecordedFlags& flags, const std::string& text, const std::vector<std::string>& missed) {
    write_result(text, flags.output);
    if (!flags.require || missed.empty()) return int(ExitCode::done);
    for (const std::string& line : missed) say("missed: " + line);
    return int(ExitCode::threshold_missed);
}

struct Recorded {
    RecordedRun run;
    Machine machine;
};

Recorded recorded(const RecordedFlags& flags) {
    checked_format(flags.output);
    if (flags.file.empty()) throw RequestError("name the file of rows that `measure gemm` wrote");
    Recorded out{read_recorded_run(read_whole_file(flags.file), flags.file), {}};
    if (const int left = out.run.without_config; left > 0)
        say(fmt::format("{} row{} without a configuration left out", left, left == 1 ? "" : "s"));
    out.machine = machine_by_id(flags.machine.empty() ? out.run.machine_id : flags.machine);
    return out;
}

int report_traffic(const RecordedFlags& flags) {
    const auto [run, machine] = recorded(flags);
    const TrafficReport report = traffic_report(run, machine);
    return finish(flags, traffic_text(report, terminal_for(flags.output)), missed_traffic_bars(report));
}

int report_predictions(const RecordedFlags& flags) {
    const auto [run, machine] = recorded(flags);
    const PredictionReport report = prediction_report(run, machine);
    return finish(flags, predictions_text(report, terminal_for(flags.output)),
                  missed_prediction_bars(report));
}

void add(CLI::App& report, Invocation& invocation, const char* name, const char* meaning, const char* file,
         const char* footer, int (*run)(const RecordedFlags&)) {
    auto flags = std::make_shared<RecordedFlags>();
    CLI::App* verb = report.add_subcommand(name, meaning);
    verb->add_option("file", flags->file, file)->type_name("FILE")->check(refuse_empty);
    verb->add_option("--machine", flags->machine,
                     "Whose numbers the model takes; default: the machine that the file names")
        ->type_name("ID|FILE")
        ->check(refuse_empty);
    verb->add_flag(
        "--require", flags->require,
        "End with 8 where a bar is missed, one line each on stderr; docs/command-line.md names them");
    add_output_flags(*verb, flags->output, Documents::text_only);
    verb->footer(footer);
    verb->callback([&invocation, flags, run] { invocation.run = [flags, run] { return run(*flags); }; });
}

}  // namespace

void add_report_recorded(CLI::App& report, Invocation& invocation) {
    add(report, invocation, "traffic", "Counted bytes beside predicted, simulated and least possible ones",
        "What `measure gemm --counters` wrote as JSON lines",
        "Example:\n"
        "  rooftile report traffic h200-sxm-traffic.jsonl --require\n",
        report_traffic);
    add(report, invocation, "predictions", "Predicted times beside measured ones, and how well they rank",
        "What `measure gemm` wrote as JSON lines",
        "Example:\n"
        "  rooftile report predictions h200-sxm-configurations.jsonl --require\n",
        report_predictions);
}

}  // namespace rooftile::cli
