#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/gemm/verbs.hpp"
#include "cli/output.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/gemm/predictions.hpp"
#include "rooftile/gemm/traffic_report.hpp"

namespace rooftile::cli {
namespace {

int finish(const Given& given, const OutputFlags& output, const std::string& text,
           const std::vector<std::string>& missed) {
    write_result(text, output);
    if (!given.has("require") || missed.empty()) return int(ExitCode::done);
    for (const std::string& line : missed) say("missed: " + line);
    return int(ExitCode::threshold_missed);
}

struct Recorded {
    RecordedRun run;
    Machine machine;
};

Recorded recorded(const Given& given, const OutputFlags& output) {
    checked_format(output);
    if (!given.has("file")) throw RequestError("name the file of rows that `measure gemm` wrote");
    const std::string& file = given.text("file");
    Recorded out{read_recorded_run(read_whole_file(file), file), {}};
    if (const int left = out.run.without_config; left > 0)
        say(fmt::format("{} row{} without a configuration left out", left, left == 1 ? "" : "s"));
    out.machine = given.has("machine") ? machine_by_id(given.text("machine")) : shipped_machine(out.run.machine_id);
    set_numbers(out.machine, given.list("set"));
    return out;
}

int report_traffic(const Given& given, const OutputFlags& output, const Invocation&) {
    const auto [run, machine] = recorded(given, output);
    const TrafficReport report = traffic_report(run, machine);
    return finish(given, output, traffic_text(report, terminal_for(output)), missed_traffic_bars(report));
}

int report_predictions(const Given& given, const OutputFlags& output, const Invocation&) {
    const auto [run, machine] = recorded(given, output);
    const PredictionReport report = prediction_report(run, machine);
    return finish(given, output, predictions_text(report, terminal_for(output)), missed_prediction_bars(report));
}

std::vector<Field> recorded_fields(const char* file) {
    const char* group = "Options";
    return {{"file", "FILE", file, group, FieldKind::positional},
            {"machine", "ID|FILE", "Whose numbers the model takes; default: the machine that the file names", group},
            {"set", "KEY=VALUE", "Replace one of these numbers; repeatable", group, FieldKind::list},
            {"require", "", "End with 8 where a bar is missed, one line each on stderr; docs/command-line.md names them",
             group, FieldKind::on}};
}

}  // namespace

void add_report_recorded(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "report traffic",
                     .meaning = "Counted bytes beside predicted, simulated and least possible ones",
                     .fields = recorded_fields("What `measure gemm --counters` wrote as JSON lines"),
                     .documents = Documents::text_only,
                     .examples = "Example:\n  rooftile report traffic h200-sxm-traffic.jsonl --require\n",
                     .synopsis = "FILE",
                     .run = report_traffic});
    verbs.push_back({.path = "report predictions",
                     .meaning = "Predicted times beside measured ones, and how well they rank",
                     .fields = recorded_fields("What `measure gemm` wrote as JSON lines"),
                     .documents = Documents::text_only,
                     .examples = "Example:\n  rooftile report predictions h200-sxm-configurations.jsonl --require\n",
                     .synopsis = "FILE",
                     .run = report_predictions});
}

}  // namespace rooftile::cli
