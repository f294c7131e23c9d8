#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/machine_report.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile::cli {
namespace {

int list(const Given&, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    std::vector<Machine> machines;
    for (const std::string& id : machine_ids()) machines.push_back(machine_by_id(id));
    if (format == Format::json)
        write_result(json_text(machines_document(context_of(invocation.command), machines)), output);
    else {
        const Terminal terminal = terminal_for(output);
        write_result(machines_text(machines, terminal) + "\n" + entry("invented, by id", joined(invented_ids()), terminal), output);
    }
    return int(ExitCode::done);
}

/// The GPU here. Throws Error that names what can be shown without one.
LiveMachine gpu_here() {
    try {
        return live_machine();
    } catch (const Error& error) {
        if (error.code() != ExitCode::no_gpu) throw;
        throw Error(error.code(), std::string(error.what()) + "; or name a machine: `rooftile machine list`", error.detail());
    }
}

int show(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const bool toml = given.has("toml");
    if (toml && format == Format::json) throw RequestError("--toml and --json exclude each other; give one");
    Machine machine;
    if (given.has("machine")) {
        machine = machine_by_id(given.text("machine"));
    } else {
        LiveMachine live = gpu_here();
        if (!live.note.empty()) say(live.note);
        machine = std::move(live.machine);
    }
    set_numbers(machine, given.list("set"));
    if (toml) write_result(to_toml(machine), output);
    else if (format == Format::json)
        write_result(json_text(machine_document(context_of(machine, invocation.command), machine)), output);
    else {
        const Terminal terminal = terminal_for(output);
        write_result(given.has("all") ? machine_text(machine, terminal) : machine_summary(machine, terminal), output);
    }
    return int(ExitCode::done);
}

}  // namespace

void add_machine(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "machine list",
                     .meaning = "The machines that are shipped",
                     .fields = {},
                     .documents = Documents::json_only,
                     .examples = "Example:\n  rooftile machine list\n",
                     .synopsis = {},
                     .run = list});
    const char* group = "Options";
    verbs.push_back(
        {.path = "machine show",
         .meaning = "One machine on a page; --all: every number, its source, what is unknown",
         .fields = {{"machine", "ID|FILE", "A shipped id or a machine file; default: the GPU here", group,
                     FieldKind::positional},
                    {"all", "", "Every number with its source, and what is unknown", group, FieldKind::on},
                    {"set", "KEY=VALUE", "Replace one number first; repeatable", group, FieldKind::list},
                    {"toml", "", "As a machine file, to start one of your own from", group, FieldKind::on}},
         .documents = Documents::json_only,
         .examples = "Examples:\n  rooftile machine show h100-sxm\n  rooftile machine show h100-sxm --all\n"
                     "  rooftile machine show h100-sxm --toml > mine.toml\n",
         .synopsis = {},
         .run = show});
    add_machine_probe(verbs);
    add_machine_compare(verbs);
}

}  // namespace rooftile::cli
