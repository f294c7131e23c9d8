// `measure ways OPERATOR`: one operator as it can be written in several ways, on one table. Python runs them; the recording of that run has
// the device's times.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/python_run.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/ways/ways.hpp"

namespace rooftile::cli {
namespace {

constexpr std::int64_t most_size = std::int64_t{1} << 24;

/// Of all operators, each once, with what it usually is.
std::vector<Field> size_fields() {
    std::vector<Field> out;
    for (const WayOperator& each : way_operators())
        for (const auto& [name, usual] : each.sizes) {
            const std::string says = fmt::format("{} {}", each.name, usual);
            const auto known = std::ranges::find(out, name, &Field::key);
            if (known == out.end()) out.push_back({name, "N", "Default: " + says, "Sizes"});
            else known->meaning += ", " + says;
        }
    return out;
}

std::vector<Field> ways_fields() {
    std::vector<std::string> names;
    for (const WayOperator& each : way_operators()) names.push_back(each.name);
    const char* group = "Options";
    return joined_fields({std::vector<Field>{{"operator", "OPERATOR", joined(names), "Operator", FieldKind::positional}}, size_fields(),
                          std::vector<Field>{{"type", "TYPE", "Type of the operands and the result: bf16 (default)", group},
                                             {"seed", "S", "Seed of the random operands; default 1", group},
                                             {"no_time", "", "Only verify; without a GPU what runs on the CPU", group, FieldKind::on}},
                          python_fields(), target_fields()});
}

WaysRequest ways_request(const Given& given) {
    if (!given.has("operator")) throw RequestError("measure ways needs an operator: rooftile measure ways " + way_operators().front().name);
    WaysRequest out;
    out.what = &way_operator(given.text("operator"));
    only_value(given.name("type"), given.text("type"), "bf16");
    out.type = "bf16";
    for (const auto& [name, usual] : out.what->sizes)
        out.sizes[name] = given.has(name) ? size_number(given.name(name), given.text(name), most_size) : usual;
    std::vector<std::string> own;
    for (const auto& [name, usual] : out.what->sizes) own.push_back(flag_of(name));
    for (const Field& field : size_fields())
        if (given.has(field.key) && !out.sizes.contains(field.key))
            throw RequestError(fmt::format("{} has no {}; its sizes are {}", out.what->name, given.name(field.key), joined(own)));
    return out;
}

int measure_ways(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    check_picture_files(given);
    const WaysRequest request = ways_request(given);
    const std::uint64_t seed = given.has("seed") ? seed_number(given.name("seed"), given.text("seed")) : 1;
    const auto [machine, note] = target_of(given);
    Json asked = {
        {"operator", request.what->name}, {"module", request.what->name}, {"sizes", request.sizes}, {"type", request.type}, {"seed", seed},
        {"time", !given.has("no_time")}};
    const PythonRun run = run_python("ways.py", std::move(asked), given, !given.has("no_time"));
    if (!note.empty()) say(note);
    std::vector<std::string> elsewhere;
    for (const std::string& id : machine_ids())
        if (id != machine->id) elsewhere.push_back(id);
    const Json document =
        ways_document(context_of_run(*machine, run, invocation.command, seed), request, run.report, run.recordings, machine, elsewhere);
    if (wants_pictures(given)) write_pictures(given, document, invocation.command);
    write_result(output.json ? json_text(document) : ways_text(document, terminal_for(output)), output);
    for (const Json& way : document.at("ways"))
        if (way.at("right").is_boolean() && !way.at("right").get<bool>()) {
            say(fmt::format("{}, {}: the result is wrong", request.what->name, text_at(way, "name")));
            return int(ExitCode::verification_failed);
        }
    return int(ExitCode::done);
}

}  // namespace

void add_ways(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "measure ways",
                     .meaning = "One operator in six ways, side by side: operators, torch.compile, Triton, CUDA by hand, Rooftile",
                     .fields = joined_fields({ways_fields(), picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile measure ways gelu\n"
                                 "  rooftile measure ways softmax --rows 4096 --columns 32768 --html softmax.html\n"
                                 "  rooftile measure ways gelu --no-time\n",
                     .synopsis = "OPERATOR",
                     .run = measure_ways});
}

}  // namespace rooftile::cli
