#include "cli/machine_compare.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/probe/compare.hpp"

namespace rooftile::cli {
namespace {

struct CompareFlags {
    OutputFlags output;
    std::string first, second;
};

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

int compare(const CompareFlags& flags) {
    checked_format(flags.output);
    if (flags.first.empty() || flags.second.empty())
        throw RequestError("compare two documents of `rooftile machine probe --data FILE`: compare A B");
    const auto numbers = compare_probes(document_in(flags.first), document_in(flags.second));
    write_result(compared_text(numbers, terminal_for(flags.output)), flags.output);
    const auto apart = disagreements(numbers);
    if (apart.empty()) return int(ExitCode::done);
    std::string names;
    for (const ProbedTwice& n : apart) names += (names.empty() ? "" : ", ") + n.name;
    say(fmt::format("{} numbers are further apart than their spreads: {}", apart.size(), names));
    return int(ExitCode::threshold_missed);
}

}  // namespace

void add_machine_compare(CLI::App& machine, Invocation& invocation) {
    auto flags = std::make_shared<CompareFlags>();
    CLI::App* verb = machine.add_subcommand(
        "compare", "Two probes of one GPU: do they agree within their spreads? Code 8 where not");
    verb->add_option("first", flags->first, "What `machine probe --data` wrote")
        ->type_name("FILE")
        ->check(refuse_empty);
    verb->add_option("second", flags->second, "The same of another run")
        ->type_name("FILE")
        ->check(refuse_empty);
    add_output_flags(*verb, flags->output, Documents::text_only);
    verb->footer("Example:\n  rooftile machine compare first.json second.json\n");
    verb->callback([&invocation, flags] { invocation.run = [flags] { return compare(*flags); }; });
}

}  // namespace rooftile::cli
