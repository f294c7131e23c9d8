// `compare A B`: what changed between two runs.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/comparison.hpp"

namespace rooftile::cli {
namespace {

/// Lines of a run; of a whole document what --jsonl would have written.
SuiteRecord run_in(const std::string& file) {
    std::string text = read_whole_file(file);
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_object() && document.contains("rows")) {
        text = json_text(context_line(document), -1);
        for (const Json& row : row_lines(document)) text += json_text(row, -1);
    }
    return read_suite_record(text, file);
}

int compare(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    if (!given.has("first") || !given.has("second"))
        throw RequestError(
            "compare needs two runs: compare A.jsonl B.jsonl, as `sweep --out` or `measure --json` wrote "
            "them");
    constexpr std::int64_t most_percent = 50;
    const double within =
        given.has("within")
            ? double(whole_number(given.name("within"), given.text("within"), 0, most_percent)) / 100
            : 0.02;
    const Comparison comparison = compared(run_in(given.text("first")), run_in(given.text("second")), within);
    write_result(comparison_text(comparison, terminal_for(output)), output);
    if (!given.has("require") || comparison.count(Change::slower) == 0) return int(ExitCode::done);
    say(fmt::format("{} of {} problems are slower", comparison.count(Change::slower),
                    comparison.problems.size()));
    return int(ExitCode::threshold_missed);
}

}  // namespace

void add_compare(std::vector<Verb>& verbs) {
    verbs.push_back(
        {.path = "compare",
         .meaning = "Two runs of the same problems: same, faster, slower or undecided, each",
         .fields =
             {{"first", "FIRST", "What `sweep --out`, `measure --suite` or `measure --json` wrote", "Files",
               FieldKind::positional},
              {"second", "SECOND", "The same of another run", "Files", FieldKind::positional},
              {"within", "PERCENT",
               "Ratios that close to 1 are the same; default 2, by which two runs of one program may differ",
               "Options"},
              {"require", "", "End with 8 where a problem is slower", "Options", FieldKind::on}},
         .documents = Documents::text_only,
         .examples = "Examples:\n  rooftile compare before.jsonl after.jsonl\n  rooftile compare "
                     "before.jsonl after.jsonl --require\n",
         .synopsis = "FIRST SECOND",
         .run = compare});
}

}  // namespace rooftile::cli
