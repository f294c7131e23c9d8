#include <fmt/core.h>

#include "cli/pictures.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/sweep_report.hpp"

namespace rooftile::cli {
namespace {

Field current_field(const char* group) {
    return {"current", "", "Refuse rows of another program: of other sources or machine files", group, FieldKind::on};
}

SuiteRecord record_of(const std::string& file, std::string_view verb, const Given& given) {
    if (file.empty())
        throw RequestError(fmt::format("report {0} needs the file of rows that a run wrote: report {0} FILE.jsonl", verb));
    SuiteRecord record = read_suite_record(read_whole_file(file), file);
    if (record.shapes.empty()) throw RequestError(fmt::format("{}: no problem in it is complete", file));
    if (!find_operation(record.op()))
        throw RequestError(fmt::format("{}: this program has no operation {}", file, record.op()));
    if (given.has("current") && record.program_hash != program_hash())
        throw RequestError(fmt::format("{}: rows of another program ({}, now {}); measure them again", file,
                                       record.program_hash.empty() ? "none" : record.program_hash, program_hash()));
    return record;
}

int report_suite(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    SuiteRecord record = record_of(given.text("file"), "suite", given);
    const Operation* operation = find_operation(record.op());
    std::optional<Suite> suite;
    if (given.has("suite")) suite = read_suite(*operation, given.text("suite"));
    const SuiteReporter report = operation->suite_reporter(std::move(record), suite ? &*suite : nullptr);
    write_result(given.has("markdown") ? report.markdown() : report.text(terminal_for(output)), output);
    if (!given.has("require")) return int(ExitCode::done);
    for (const std::string& line : report.missed) say("missed: " + line);
    return int(report.missed.empty() ? ExitCode::done : ExitCode::threshold_missed);
}

int report_sweep(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    std::vector<SuiteRecord> records = {record_of(given.text("file"), "sweep", given)};
    for (const std::string& file : given.list("with")) records.push_back(record_of(file, "sweep", given));
    std::shared_ptr<const Machine> machine;
    if (given.has("again") || given.has("machine") || given.has("set")) {
        Given planned = given;
        if (!given.has("machine")) planned.add_default("machine", shipped_machine(records.front().machine_id).id);  // what a run names is no file to be read
        machine = target_of(planned).machine;
    }
    std::optional<Progress> progress(std::in_place, "planning anew");
    const SweepReport report = sweep_report(std::move(records), machine);
    progress.reset();
    if (wants_pictures(given)) write_pictures(given, sweep_document(report), {});
    write_result(output.json             ? json_text(sweep_document(report))
                 : given.has("markdown") ? sweep_markdown(report)
                                         : sweep_text(report, terminal_for(output)),
                 output);
    return int(ExitCode::done);
}

}  // namespace

void add_report(std::vector<Verb>& verbs) {
    const char* group = "Options";
    verbs.push_back(
        {.path = "report suite",
         .meaning = "A suite's run next to the vendor's library or the memory's roofs, and its bars",
         .fields = {{"file", "FILE", "What `measure OPERATION --suite` wrote", group, FieldKind::positional},
                    {"suite", "FILE", "The suite's file: names what is not measured", group},
                    current_field(group),
                    {"markdown", "", "Markdown instead of text", group, FieldKind::on},
                    {"require", "",
                     "End with 8 where a bar is missed, one line each on stderr; docs/command-line.md names them", group,
                     FieldKind::on}},
         .documents = Documents::text_only,
         .examples = "Examples:\n"
                     "  rooftile report suite bench/results/current/h200-sxm.jsonl\n"
                     "  rooftile report suite memory.jsonl --suite bench/suites/memory.toml --require\n",
         .synopsis = "FILE.jsonl",
         .run = report_suite});
    verbs.push_back({.path = "report sweep",
                     .meaning = "A sweep's or a suite's run by band and by feature, with intervals and the worst problems",
                     .fields = {{"file", "FILE", "What `sweep` or `measure OPERATION --suite` wrote", group,
                                 FieldKind::positional},
                                {"with", "FILE", "Rows of another such run, too; repeatable", group, FieldKind::list},
                                current_field(group),
                                {"again", "", "Predict each measured plan anew, by the model as it is now", group, FieldKind::on},
                                {"machine", "ID|FILE", "... and by these numbers; default: those of the machine that the file names", group},
                                {"set", "KEY=VALUE", "... with this one of them replaced; repeatable", group, FieldKind::list},
                                {"markdown", "", "Markdown instead of text", group, FieldKind::on},
                                {"svg", "FILE", "Draw heat maps, or curves where one size alone varies, and predictions next to what was measured", group},
                                {"picture", "NAME", "Draw this one alone; another name lists them", group}},
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile report sweep draw-7.jsonl --svg draw-7.svg\n"
                                 "  rooftile report sweep draw-1.jsonl --with draw-2.jsonl --with draw-3.jsonl\n"
                                 "  rooftile report sweep draw-7.jsonl --set \"dram.bandwidth=3 TB/s\"\n",
                     .synopsis = "FILE.jsonl",
                     .run = report_sweep});
}

}  // namespace rooftile::cli
