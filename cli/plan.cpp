#include <unistd.h>

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/pictures.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/plan_range.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/measure/plan_range.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/probe/probe.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/report/formulas.hpp"
#include "rooftile/report/pictured_plan.hpp"
#include "rooftile/report/plan_page.hpp"
#include "rooftile/report/plan_range.hpp"

namespace rooftile::cli {
namespace {

std::vector<Field> plan_fields(const Operation& operation) {
    const Field own[] = {
        {"explain", "all", "Explain plan 1 on a page: its roof, its walls, the runners-up; =all: every step, with sources", "Output", FieldKind::on},
        {"energy", "", "Show the joules of a launch by term, and the plan of the least", "Output", FieldKind::on},
        {"buildable_only", "", "Leave out plans that no kernel exists for yet", "Output", FieldKind::on},
        {"seed", "N", "Seed of plans that are drawn; default 1", "Other plans than the best"},
        within_field(),
    };
    std::vector<Field> pictures = picture_fields(true);
    pictures.push_back({"trace", "FILE", "Write one CTA's way through a tile, by the model, as a trace for Perfetto", "Pictures"});
    if (!operation.map_keys()[0].empty())
        pictures.push_back({"map", "", fmt::format("Add the map of {} and {} to the JSON: times, and walls", operation.map_keys()[0], operation.map_keys()[1]), "Pictures", FieldKind::on});
    const char* group = "Without numbers";
    std::vector<Field> formulas;
    if (!operation.symbols().empty())
        formulas.push_back({"symbols", "", "Print the derivation without a machine: every formula, to be filled in", group, FieldKind::on});
    if (!operation.forms().empty()) {
        formulas.push_back({"form", "", "Print forms for kernels of one's own: capacity, intensity and latency by hand", group, FieldKind::on});
        formulas.push_back({"markdown", "", "Formulas and forms as Markdown", group, FieldKind::on});
    }
    return joined_fields({operation.fields(), target_fields(), own, pictures, formulas});
}

/// "dram": the probes that measure a machine's number, "wgmma, mma_sync" of those of a family.
std::string probes_of(std::string_view key) {
    std::string names;
    for (const Probe& probe : probes()) {
        std::istringstream keys{std::string(probe.keys)};
        for (std::string measured; keys >> measured;)
            if (const Key* of = match_key(measured).key; of && of->name == key) {
                names += (names.empty() ? "" : ", ") + std::string(probe.name);
                break;
            }
    }
    return names;
}

/// The forms of all operations: whoever writes a kernel of their own asks for its kind.
std::vector<FormulaPage> all_forms() {
    std::vector<FormulaPage> pages;
    for (const Operation* operation : operations())
        for (FormulaPage& page : operation->forms()) pages.push_back(std::move(page));
    return pages;
}

/// Formulas instead of plans: they have neither a problem nor a machine.
int print_formulas(const Operation& operation, const Given& given, const OutputFlags& output) {
    const std::string name = given.name(given.has("form") ? "form" : "symbols");
    if (checked_format(output) != Format::text) throw RequestError(name + " is text, or with --markdown Markdown: no document");
    for (const Field& field : plan_fields(operation))
        if (given.has(field.key) && field.key != "symbols" && field.key != "form" && field.key != "markdown")
            throw RequestError(fmt::format("{} has neither problem nor machine; leave {} out", name, given.name(field.key)));
    if (given.has("form") && given.has("symbols")) throw RequestError("--symbols and --form exclude each other; give one");
    const std::vector<FormulaPage> pages = given.has("form") ? all_forms() : operation.symbols();
    write_result(given.has("markdown") ? formulas_markdown(pages, probes_of) : formulas_text(pages, probes_of, terminal_for(output)), output);
    return int(ExitCode::done);
}

PlanDefaults defaults_of(const Given& given) {
    PlanDefaults defaults;
    defaults.buildable_only = given.has("buildable_only");
    if (given.has("seed")) {
        if (!given.has("sample")) throw RequestError("--seed needs --sample N");
        defaults.seed = seed_number(given.name("seed"), given.text("seed"));
    }
    return defaults;
}

/// A document carries the note itself; text and CSV have no place for it.
void say_beside(Format format, const Target& target) {
    if ((format == Format::text || format == Format::csv) && !target.note.empty()) say(target.note);
}

/// The fewest kernels for a range of one field.
int plan_for_range(const Operation& operation, const Given& given, const FieldRange& range, const OutputFlags& output,
                   const Invocation& invocation) {
    const Format format = checked_format(output);
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    PlanRange plans = [&] {
        const Progress progress("planning");
        return kernels_for_range(operation, target.machine, given, range);
    }();
    if (format != Format::text && !target.note.empty()) plans.notes.push_back(target.note);
    if (format == Format::text)
        write_result(range_text(context, plans, terminal_for(output)), output);
    else
        write_result(document_text(range_document(context, plans), format), output);
    say_beside(format, target);
    return int(ExitCode::done);
}

/// On a terminal, what one may do with the plan.
void say_next(const Operation& operation, const Plan& plan) {
    if (!isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO)) return;
    const Terminal terminal = terminal_for({});
    const std::string verbs = plan.buildable ? fmt::format(" · rooftile build {0} ... (compile, no GPU) · rooftile measure {0} ... (run)", operation.name()) : "";
    fmt::print(stderr, "{}\n", terminal.paint("next: --explain (why)" + verbs, Tone::faint));
}

/// A document explains all or nothing.
bool asks_for_all(const Given& given) { return given.has("explain") && !given.text("explain").empty(); }

Depth depth_of(const Given& given, Format format) {
    const bool text = format == Format::text;
    if (!given.has("explain")) return text ? Depth::reasons : Depth::none;
    return text && !asks_for_all(given) ? Depth::brief : Depth::all;
}

/// The map of the operation's tiles, where a request asks for it or for a picture of it; null: it does not, or there is none.
Json asked_map(const Given& given, const std::shared_ptr<const Machine>& machine, const Plan& first, const Own& request) {
    if (!given.has("map") && !wants_picture(given, tile_map_id)) return nullptr;
    const Progress progress("drawing the map");
    return map_json(machine, first, request);
}

int plan(const Operation& operation, const Given& given, const OutputFlags& output, const Invocation& invocation) {
    // Where an operation has no forms of this kind, the name may be one of its own fields.
    const bool asks_for_forms = !operation.forms().empty() && given.has("form");
    if (given.has("symbols") || asks_for_forms) return print_formulas(operation, given, output);
    const bool draws = wants_pictures(given);
    if (given.has("markdown")) throw RequestError("--markdown is of --symbols and --form; give one of them");
    const Format format = checked_format(output);
    const auto range = range_in(operation, given);
    if (range && (draws || given.has("map"))) throw RequestError("pictures are of one problem: leave out the range, or draw it with sweep");
    if (range) return plan_for_range(operation, given, *range, output, invocation);
    if (given.has("within"))
        throw RequestError(fmt::format("{} is of a range, A..B in the place of a number; there is none", given.name("within")));
    if (given.has("map") && format != Format::json) throw RequestError(given.name("map") + " is part of the document: it needs --json");
    check_energy(operation, given);
    check_picture_files(given);
    const Problem problem = problem_with_work(operation, given);
    const Own request = operation.request(given, defaults_of(given));
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = [&] {
        const Progress progress("planning");
        return derive_for(target, problem, request);
    }();
    if (plans.refusal) return report_refusal(plans, context, output);
    const PlanDetail detail{depth_of(given, format), given.has("energy")};
    const std::vector<Explanation> explanations = explain(*target.machine, plans, detail);
    const Json map = asked_map(given, target.machine, plans.plans.front(), request);
    if (draws) write_pictures(given, pictured_document(context, *target.machine, plans, map, given.has("energy")), invocation.command);
    if (format == Format::text) write_result(plan_text(plans, detail, explanations, terminal_for(output)), output);
    else {
        Json document = plan_document(context, plans, explanation_records(explanations), asks_for_all(given));
        if (given.has("map")) document["map"] = map;
        write_result(document_text(document, format), output);
    }
    say_beside(format, target);
    if (format == Format::text && !given.has("explain")) say_next(operation, plans.plans.front());
    return int(ExitCode::done);
}

}  // namespace

void add_plan(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        Verb verb;
        const std::string name(operation->name()), example(operation->example());
        verb.path = "plan " + name;
        verb.meaning = operation->meaning();
        verb.fields = plan_fields(*operation);
        verb.documents = Documents::all;
        verb.synopsis = example;
        verb.examples = fmt::format(
            "Examples:\n  rooftile plan {0} {1}\n  rooftile plan {0} {1} --machine h100-sxm --explain\n"
            "  rooftile plan {0} {1} --machine h20 --set \"dram.bandwidth=4.8 TB/s\" --json\n",
            name, example);
        verb.run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
            return plan(*operation, given, output, invocation);
        };
        verbs.push_back(std::move(verb));
    }
}

}  // namespace rooftile::cli
