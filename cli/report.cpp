#include <fmt/core.h>

#include "cli/verb.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/suite_rows.hpp"

namespace rooftile::cli {
namespace {

int report_suite(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    const std::string& file = given.text("file");
    if (file.empty())
        throw RequestError(
            "report suite needs the file that `measure OPERATION --suite` wrote: report suite FILE.jsonl");
    SuiteRecord record = read_suite_record(read_whole_file(file), file);
    if (record.shapes.empty()) throw RequestError(fmt::format("{}: no problem in it is complete", file));
    const Operation* operation = find_operation(record.op());
    if (!operation) throw RequestError(fmt::format("{}: this program has no operation {}", file, record.op()));
    std::optional<Suite> suite;
    if (given.has("suite")) suite = read_suite(*operation, given.text("suite"));
    const SuiteReporter report = operation->suite_reporter(std::move(record), suite ? &*suite : nullptr);
    write_result(given.has("markdown") ? report.markdown() : report.text(terminal_for(output)), output);
    if (!given.has("require")) return int(ExitCode::done);
    for (const std::string& line : report.missed) say("missed: " + line);
    return int(report.missed.empty() ? ExitCode::done : ExitCode::threshold_missed);
}

}  // namespace

void add_report(std::vector<Verb>& verbs) {
    const char* group = "Options";
    verbs.push_back(
        {.path = "report suite",
         .meaning = "A suite's run beside the vendor's library or the memory's roofs, and its bars",
         .fields = {{"file", "FILE", "What `measure OPERATION --suite` wrote", group, FieldKind::positional},
                    {"suite", "FILE", "The suite's file: names what is not measured", group},
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
}

}  // namespace rooftile::cli
