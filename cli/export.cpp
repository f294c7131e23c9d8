// `export`: a plan for somebody else's library or compiler. Needs no GPU.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/exports.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {
namespace {

constexpr int exported_from = 64;  ///< plans of which the first is taken that the target can express

[[noreturn]] void refuse_export(std::string_view name) {
    std::string others;
    for (const Operation* operation : operations())
        if (facet_of<Exports>(*operation)) others += fmt::format("{}{}", others.empty() ? "" : ", ", operation->name());
    throw RequestError(
        fmt::format("export {0}: there is none of {0}, only of {1}; `rooftile emit {0}` writes our own kernel as a file", name, others));
}

int export_plan(const Operation& operation, const Given& given, OutputFlags output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const auto* exports = facet_of<Exports>(operation);
    if (!exports) refuse_export(operation.name());
    std::vector<std::string_view> names;
    for (const ExportTarget& target : exports->targets()) names.push_back(target.name);
    if (!given.has("to")) throw RequestError(fmt::format("missing --to; accepted are {}", fmt::join(names, ", ")));
    const std::size_t to = one_of(given.name("to"), given.text("to"), names);
    const Problem problem = problem_with_work(operation, given);
    const Own request = operation.request(given, {.top = exported_from});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    std::optional<Progress> progress(std::in_place, fmt::format("planning for {}", names[to]));
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal && !exports->targets()[to].own_tiles) return progress.reset(), report_refusal(plans, context, output);
    const Exported made = exports->exported(to, target.machine, problem, request, plans, given);
    progress.reset();
    if (std::filesystem::is_directory(output.file)) output.file = (std::filesystem::path(output.file) / made.file).string();
    if (format != Format::text) {
        const Json document = {{"schema", "rooftile/export/1"},
                               {"context", context_json(context)},
                               {"machine", machine_json(context)},
                               {"problem", problem_json(problem)},
                               {"target", names[to]},
                               {"file", made.file},
                               {"text", made.text},
                               {"predicted_time_us", json_number(made.time_us)},
                               {"lost", made.lost},
                               {"notes", made.notes}};
        write_result(document_text(document, format), output);
        return int(ExitCode::done);
    }
    write_result(made.text, output);
    for (const std::string& lost : made.lost) say("lost: " + lost);
    for (const std::string& note : made.notes) say(note);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

std::vector<Field> export_fields(const Operation& operation) {
    const auto* exports = facet_of<Exports>(operation);
    std::string names, meaning = "What takes the plan";
    if (exports)
        for (const ExportTarget& target : exports->targets()) {
            names += fmt::format("{}{}", names.empty() ? "" : "|", target.name);
            meaning += fmt::format("{} {}: {}", meaning.find(':') == meaning.npos ? "." : ";", target.name, target.meaning);
        }
    const Field own[] = {{"to", names.empty() ? "TARGET" : names, meaning, "Output"}};
    return joined_fields({operation.fields(), target_fields(), exports ? exports->fields() : std::span<const Field>(), own});
}

}  // namespace

void add_export(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const auto* exports = facet_of<Exports>(*operation);
        const std::string name(operation->name()), example(operation->example());
        verbs.push_back({.path = "export " + name,
                         .meaning = exports ? "The plan for another library or compiler, and what of it is lost there"
                                            : "Not there yet: `emit` writes the kernel as a file",
                         .fields = export_fields(*operation),
                         .documents = Documents::json_only,
                         .examples = exports ? fmt::format("Examples:\n  rooftile export {0} {1} --to {2} --machine h100-sxm -o FILE\n",
                                                           name, example, exports->targets()[0].name)
                                             : "",
                         .synopsis = example,
                         .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                             return export_plan(*operation, given, output, invocation);
                         }});
    }
}

}  // namespace rooftile::cli
