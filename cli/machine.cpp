#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/machine_compare.hpp"
#include "cli/machine_probe.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/machine_report.hpp"

namespace rooftile::cli {
namespace {

struct ShowFlags {
    std::string machine;
    std::vector<std::string> set;
    bool toml = false;
    OutputFlags output;
};

int list(const OutputFlags& output, const std::string& command) {
    const Format format = checked_format(output);
    std::vector<Machine> machines;
    for (const std::string& id : machine_ids()) machines.push_back(machine_by_id(id));
    if (format == Format::json)
        write_result(json_text(machines_document(context_of(command), machines)), output);
    else write_result(machines_text(machines, terminal_for(output)), output);
    return int(ExitCode::done);
}

int show(const ShowFlags& flags, const std::string& command) {
    const Format format = checked_format(flags.output);
    if (flags.toml && format == Format::json)
        throw RequestError("--toml and --json exclude each other; give one");
    Machine machine;
    if (!flags.machine.empty()) {
        machine = machine_by_id(flags.machine);
    } else {
        LiveMachine live = live_machine();
        if (!live.note.empty()) say(live.note);
        machine = std::move(live.machine);
    }
    for (const std::string& assignment : flags.set) set_number(machine, assignment);
    if (flags.toml) write_result(to_toml(machine), flags.output);
    else if (format == Format::json)
        write_result(json_text(machine_document(context_of(machine, command), machine)), flags.output);
    else write_result(machine_text(machine, terminal_for(flags.output)), flags.output);
    return int(ExitCode::done);
}

}  // namespace

void add_machine(CLI::App& app, Invocation& invocation) {
    CLI::App* machine =
        app.add_subcommand("machine", "GPUs as numbers: every one with its unit and its source");
    machine->callback([&invocation, machine] {
        if (!machine->get_subcommands().empty()) return;
        invocation.run = []() -> int { throw RequestError("machine what? list, show, probe or compare"); };
    });

    auto listing = std::make_shared<OutputFlags>();
    CLI::App* list_verb = machine->add_subcommand("list", "The machines that are shipped");
    add_output_flags(*list_verb, *listing, Documents::json_only);
    list_verb->footer("Example:\n  rooftile machine list\n");
    list_verb->callback([&invocation, listing] {
        invocation.run = [&invocation, listing] { return list(*listing, invocation.command); };
    });

    auto flags = std::make_shared<ShowFlags>();
    CLI::App* show_verb =
        machine->add_subcommand("show", "Every number of one machine, its source, what is unknown");
    show_verb->add_option("machine", flags->machine, "A shipped id or a machine file; default: the GPU here")
        ->type_name("ID|FILE")
        ->check(refuse_empty);
    show_verb->add_option("--set", flags->set, "Replace one number first; repeatable")
        ->type_name("KEY=VALUE")
        ->check(refuse_empty)
        ->take_all()
        ->expected(1);
    show_verb->add_flag("--toml", flags->toml, "As a machine file, to start one of your own from");
    add_output_flags(*show_verb, flags->output, Documents::json_only);
    show_verb->footer(
        "Examples:\n"
        "  rooftile machine show h100-sxm\n"
        "  rooftile machine show h100-sxm --toml > mine.toml\n");
    show_verb->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return show(*flags, invocation.command); };
    });

    add_machine_probe(*machine, invocation);
    add_machine_compare(*machine, invocation);
}

}  // namespace rooftile::cli
