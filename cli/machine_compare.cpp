#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/probe/compare.hpp"

namespace rooftile::cli {
namespace {

Json document_in(const std::string& file) {
    try {
        return Json::parse(read_whole_file(file));
    } catch (const nlohmann::json::exception&) {
        throw RequestError(
            fmt::format("{}: not JSON; `rooftile machine probe --data FILE` writes what is "
                        "compared",
                        printable(file, 200)));
    }
}

int compare(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    if (!given.has("first") || !given.has("second"))
        throw RequestError("compare two documents of `rooftile machine probe --data FILE`: compare A B");
    const auto numbers = compare_probes(document_in(given.text("first")), document_in(given.text("second")));
    write_result(compared_text(numbers, terminal_for(output)), output);
    const auto apart = disagreements(numbers);
    if (apart.empty()) return int(ExitCode::done);
    std::string names;
    for (const ProbedTwice& n : apart) names += (names.empty() ? "" : ", ") + n.name;
    say(fmt::format("{} numbers are further apart than their spreads: {}", apart.size(), names));
    return int(ExitCode::threshold_missed);
}

}  // namespace

void add_machine_compare(std::vector<Verb>& verbs) {
    verbs.push_back(
        {.path = "machine compare",
         .meaning = "Two probes of one GPU: do they agree within their spreads? Code 8 where not",
         .fields = {{"first", "FIRST", "What `machine probe --data` wrote", "Files", FieldKind::positional},
                    {"second", "SECOND", "The same of another run", "Files", FieldKind::positional}},
         .documents = Documents::text_only,
         .examples = "Example:\n  rooftile machine compare first.json second.json\n",
         .synopsis = {},
         .run = compare});
}

}  // namespace rooftile::cli
