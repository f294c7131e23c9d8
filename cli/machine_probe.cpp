#include "cli/machine_probe.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/probe/document.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {
namespace {

struct ProbeFlags {
    std::string out, data, device, max_seconds;
    std::vector<std::string> only;
    bool json = false, list = false;
    std::string color = "auto";
};

std::string probes_text() {
    Table table(
        {{"probe", Table::Align::left, 0}, {"what", Table::Align::left, 0}, {"keys", Table::Align::left, 1}});
    for (const Probe& p : probes())
        table.row({{std::string(p.name)}, {std::string(p.meaning)}, {std::string(p.keys)}});
    return table.text(Terminal{});
}

Json probes_document(const std::string& command) {
    const auto words = [](std::string_view text) {
        std::istringstream stream{std::string(text)};
        return std::vector<std::string>{std::istream_iterator<std::string>(stream), {}};
    };
    Json list = Json::array();
    for (const Probe& p : probes())
        list.push_back({{"name", p.name},
                        {"meaning", p.meaning},
                        {"keys", words(p.keys)},
                        {"units", words(p.units)},
                        {"seconds", json_number(p.seconds)}});
    return {{"schema", "rooftile/probes/1"},
            {"context", context_json(context_of(command))},
            {"probes", std::move(list)}};
}

void say_result(const ProbeResult& result) {
    if (!result.failure.empty()) say(fmt::format("{}: {}", result.probe, result.failure));
    for (const ProbeValue& v : result.values) say(value_line(v));
    say(fmt::format("{}: {} values, {} points in {:.1f} s", result.probe, result.values.size(),
                    result.points.size(), result.seconds));
}

OutputFlags file_of(const std::string& file, const char* flag) {
    OutputFlags output;
    output.file = file;
    output.flag = flag;
    return output;
}

/// Written as soon as it is known, whatever fails afterwards.
void write_file(const std::string& file, const char* flag, std::string_view text) {
    if (!file.empty()) write_result(text, file_of(file, flag));
}

int probe(const ProbeFlags& flags, const std::string& command) {
    OutputFlags output;
    output.json = flags.json;
    output.color = flags.color;
    const Format format = checked_format(output);
    if (flags.list) {
        write_result(format == Format::json ? json_text(probes_document(command)) : probes_text(), output);
        return int(ExitCode::done);
    }
    ProbeOptions options;
    if (!flags.device.empty()) options.device = int(whole_number("--device", flags.device, 0, 1023));
    if (!flags.max_seconds.empty())
        options.max_seconds = double(whole_number("--max-seconds", flags.max_seconds, 1, 3600));
    options.only = flags.only;
    options.done = say_result;
    probes_named(options.only);  // refuses an unknown name before anything runs
    check_writable(file_of(flags.data, "--data"));
    check_writable(file_of(flags.out, "--out"));
    const ProbeRun run = run_probes(options);

    std::vector<std::string> notes;
    const std::string date = utc_now();
    const Machine machine = probed_machine(run, date.substr(0, 10), command, notes);
    DocumentContext context = context_of(machine, command);
    context.gpu = GpuContext{run.gpu.name, run.gpu.driver, run.gpu.nvrtc, date, 1};
    const std::string document = json_text(probe_document(context, run, notes));
    write_file(flags.data, "--data", document);
    write_file(flags.out, "--out", to_toml(machine));
    write_result(format == Format::json ? document : probe_text(run, notes, terminal_for(output)), output);
    for (const ProbeResult& result : run.results)
        if (!result.failure.empty()) return int(ExitCode::gpu_failed);
    return int(ExitCode::done);
}

}  // namespace

void add_machine_probe(CLI::App& machine, Invocation& invocation) {
    auto flags = std::make_shared<ProbeFlags>();
    CLI::App* verb = machine.add_subcommand("probe", "Measure this GPU's numbers, in less than 90 s");
    verb->add_option("--out", flags->out, "Write the machine file here")
        ->type_name("FILE")
        ->check(refuse_empty);
    verb->add_option("--data", flags->data, "Write the JSON document with every point of every curve here")
        ->type_name("FILE")
        ->check(refuse_empty);
    verb->add_option("--device", flags->device, "Which GPU (0)")->type_name("N");
    verb->add_option("--only", flags->only, "Probes to run, comma-separated; --list names them")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->check(refuse_empty);
    verb->add_option("--max-seconds", flags->max_seconds, "Leave out what no longer fits (85)")
        ->type_name("S");
    verb->add_option("--color", flags->color, "auto, always or never")->type_name("WHEN");
    verb->add_flag("--json", flags->json, "The document instead of the table");
    verb->add_flag("--list", flags->list, "The probes and what each measures; needs no GPU");
    verb->footer(
        "Each probe runs in a process of its own. What one measures goes to stderr as it ends.\n"
        "Examples:\n"
        "  rooftile machine probe --out mine.toml --data mine.json\n"
        "  rooftile machine probe --only tma,cluster\n");
    verb->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return probe(*flags, invocation.command); };
    });
}

}  // namespace rooftile::cli
