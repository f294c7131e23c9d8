#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/ladder.hpp"
#include "cli/output.hpp"
#include "cli/report_recorded.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/fuse/suite_report.hpp"
#include "rooftile/gemm/suite_report.hpp"

namespace rooftile::cli {
namespace {

struct SuiteReportFlags {
    OutputFlags output;
    std::string file, suite;
    bool markdown = false, require = false;
};

/// Writes the report; exit code 8 where a bar is missed and that was asked about.
template <class Report>
int finish(const Report& report, const SuiteReportFlags& flags) {
    write_result(flags.markdown ? suite_markdown(report) : suite_text(report, terminal_for(flags.output)),
                 flags.output);
    if (!flags.require) return int(ExitCode::done);
    const auto missed = missed_bars(report);
    for (const std::string& line : missed) say("missed: " + line);
    return int(missed.empty() ? ExitCode::done : ExitCode::threshold_missed);
}

int report_suite(const SuiteReportFlags& flags) {
    checked_format(flags.output);
    if (flags.file.empty())
        throw RequestError(
            "report suite needs the file that `measure gemm --suite` or `measure fuse --suite` "
            "wrote: report suite FILE.jsonl");
    SuiteRecord record = read_suite_record(read_whole_file(flags.file), flags.file);
    if (record.shapes.empty())
        throw RequestError(fmt::format("{}: no problem in it is complete", flags.file));
    if (record.op() == "fuse") {
        std::optional<FuseSuite> suite;
        if (!flags.suite.empty()) suite = read_fuse_suite(flags.suite);
        return finish(fuse_suite_report(std::move(record), suite ? &*suite : nullptr), flags);
    }
    std::optional<Suite> suite;
    if (!flags.suite.empty()) suite = read_suite(flags.suite);
    return finish(suite_report(std::move(record), suite ? &*suite : nullptr), flags);
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
    CLI::App* report = app.add_subcommand("report", "Say what recorded results mean together");
    report->callback([&invocation, report] {
        if (!report->get_subcommands().empty()) return;
        invocation.run = []() -> int { throw RequestError("report what? rooftile report suite FILE.jsonl"); };
    });
    auto flags = std::make_shared<SuiteReportFlags>();
    CLI::App* suite =
        report->add_subcommand("suite", "A suite's run beside cuBLASLt or the memory's roofs, and its bars");
    suite->add_option("file", flags->file, "What `measure gemm --suite` or `measure fuse --suite` wrote")
        ->type_name("FILE")
        ->check(refuse_empty);
    suite->add_option("--suite", flags->suite, "The suite's file: names what is not measured")
        ->type_name("FILE")
        ->check(refuse_empty);
    suite->add_flag("--markdown", flags->markdown, "Markdown instead of text");
    suite->add_flag(
        "--require", flags->require,
        "End with 8 where a bar is missed, one line each on stderr; docs/command-line.md names them");
    add_output_flags(*suite, flags->output, Documents::text_only);
    suite->footer(
        "Examples:\n"
        "  rooftile report suite bench/results/current/h200-sxm.jsonl\n"
        "  rooftile report suite gemm.jsonl --suite bench/suites/gemm.toml --require\n"
        "  rooftile report suite memory.jsonl --suite bench/suites/memory.toml --require\n");
    suite->callback([&invocation, flags] { invocation.run = [flags] { return report_suite(*flags); }; });
    add_report_ladder(*report, invocation);
    add_report_recorded(*report, invocation);
}

}  // namespace rooftile::cli
