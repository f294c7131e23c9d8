// `validate`: the model and the planner of this program held against ledgers of measured spaces. Needs no GPU.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/validation.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile::cli {
namespace {

constexpr const char* folder = "bench/results/ledger";

/// Those that the request names, else all of the repository's.
std::vector<std::string> files_of(const Given& given) {
    std::vector<std::string> files = given.list("ledger");
    std::error_code error;
    if (files.empty())
        for (const auto& entry : std::filesystem::directory_iterator(folder, error))
            if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    if (files.empty())
        throw RequestError(fmt::format(
            "no ledger in {} here; name one: --ledger FILE, as `rooftile ledger` writes it", folder));
    return files;
}

int validate(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    std::map<std::string, std::vector<Ledger>> by_operation;
    std::string machine;
    for (const std::string& file : files_of(given)) {
        Ledger ledger = read_ledger(read_whole_file(file), file);
        if (!machine.empty() && ledger.machine_id != machine && !given.has("machine"))
            throw RequestError(fmt::format("ledgers of {} and {}: name those of one machine, or --machine",
                                           machine, ledger.machine_id));
        machine = ledger.machine_id;
        by_operation[std::string(ledger.operation->name())].push_back(std::move(ledger));
    }
    if (!given.has("machine")) shipped_machine(machine);  // what a ledger names is no file to be read
    Given planned = given;
    planned.add_default("machine", machine);
    const Target target = target_of(planned);
    std::vector<Validation> operations;
    for (const auto& [name, ledgers] : by_operation)
        operations.push_back(validation_of(ledgers, target.machine, [&name](std::size_t count, const auto& work) {
            Progress progress("planning problems of " + name, count);
            in_parallel(count, 0, [&](std::size_t i) {
                work(i);
                progress.step();
            });
        }));
    std::string text;
    if (format == Format::text)
        for (const Validation& v : operations)
            text += (text.empty() ? "" : "\n") + validation_text(v, terminal_for(output));
    else
        text = document_text(validation_document(context_of(*target.machine, invocation.command), operations),
                             format);
    std::vector<std::string> missed;
    for (const Validation& v : operations)
        for (std::string& line : missed_thresholds(v, given.list("require")))
            missed.push_back(std::move(line));
    write_result(text, output);
    for (const std::string& line : missed) say("missed: " + line);
    return int(missed.empty() ? ExitCode::done : ExitCode::threshold_missed);
}

}  // namespace

void add_validate(std::vector<Verb>& verbs) {
    const char* group = "Ledgers";
    const Field own[] = {
        {"ledger", "FILE",
         fmt::format("What `rooftile ledger` wrote; repeatable; default: all in {}", folder), group,
         FieldKind::list},
        {"require", "NAME=VALUE",
         "End with 8 where a figure misses it, as regret.mean=1.02; repeatable; docs/command-line.md names "
         "them",
         group, FieldKind::list},
    };
    verbs.push_back(
        {.path = "validate",
         .meaning = "Planner and model beside every measured configuration of a ledger; needs no GPU",
         .fields = joined_fields({own, target_fields()}),
         .documents = Documents::json_only,
         .examples = "Examples:\n  rooftile validate\n"
                     "  rooftile validate --ledger ledger.jsonl --require regret.mean=1.02 --json\n",
         .synopsis = "[--ledger FILE]",
         .run = validate});
}

}  // namespace rooftile::cli
