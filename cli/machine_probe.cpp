#include <fmt/core.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/probe/document.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {
namespace {

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

/// "tma,cluster"
std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

int probe(const Given& given, const OutputFlags& asked, const Invocation& invocation) {
    const std::string &data = given.text("data"), &file = given.text("out"), &command = invocation.command;
    OutputFlags output = asked;
    output.file.clear();  // --out is the machine file's
    const Format format = checked_format(output);
    if (given.has("list")) {
        write_result(format == Format::json ? json_text(probes_document(command)) : probes_text(), output);
        return int(ExitCode::done);
    }
    ProbeOptions options;
    if (given.has("device")) options.device = int(whole_number("--device", given.text("device"), 0, 1023));
    if (given.has("max_seconds"))
        options.max_seconds = double(whole_number("--max-seconds", given.text("max_seconds"), 1, 3600));
    options.only = parts_of(given.text("only"));
    options.done = say_result;
    probes_named(options.only);  // refuses an unknown name before anything runs
    check_writable(file_of(data, "--data"));
    check_writable(file_of(file, "--out"));
    const ProbeRun run = run_probes(options);

    std::vector<std::string> notes;
    const std::string date = utc_now();
    const Machine machine = probed_machine(run, date.substr(0, 10), command, notes);
    DocumentContext context = context_of(machine, command);
    context.gpu = GpuContext{run.gpu.name, run.gpu.driver, run.gpu.nvrtc, date, 1};
    const std::string document = json_text(probe_document(context, run, notes));
    write_file(data, "--data", document);
    write_file(file, "--out", to_toml(machine));
    write_result(format == Format::json ? document : probe_text(run, notes, terminal_for(output)), output);
    for (const ProbeResult& result : run.results)
        if (!result.failure.empty()) return int(ExitCode::gpu_failed);
    return int(ExitCode::done);
}

}  // namespace

void add_machine_probe(std::vector<Verb>& verbs) {
    const char* group = "Options";
    verbs.push_back(
        {.path = "machine probe",
         .meaning = "Measure this GPU's numbers, in less than 90 s",
         .fields = {{"out", "FILE", "Write the machine file here", group},
                    {"data", "FILE", "Write the JSON document with every point of every curve here", group},
                    {"device", "N", "Which GPU (0)", group},
                    {"only", "NAME,...", "Probes to run, comma-separated; --list names them", group},
                    {"max_seconds", "S", "Leave out what no longer fits (85)", group},
                    {"json", "", "The document instead of the table", group, FieldKind::on},
                    {"list", "", "The probes and what each measures; needs no GPU", group, FieldKind::on}},
         .documents = Documents::text_only,
         .examples =
             "Each probe runs in a process of its own.\nWhat one measures goes to stderr as it ends.\n"
             "Examples:\n"
             "  rooftile machine probe --out mine.toml --data mine.json\n"
             "  rooftile machine probe --only tma,cluster\n",
         .synopsis = {},
         .run = probe});
}

}  // namespace rooftile::cli
