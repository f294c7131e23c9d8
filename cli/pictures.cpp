#include "cli/pictures.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/picture/page.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/sweep_report.hpp"
#include "rooftile/report/validation.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile::cli {
namespace {

constexpr const char* file_keys[] = {"svg", "html", "trace"};

/// All of them, or the one that is asked for.
std::vector<Picture> asked_pictures(const Given& given, const Json& document) {
    return pictures_of(document, given.has("picture") ? given.text("picture") : "", given.name("picture"));
}

Json trace_of(const Json& document) {
    const char* list = document.contains("plans") ? "plans" : "rows";
    if (!document.contains(list) || document.at(list).empty() || !document.at(list)[0].contains("pipeline"))
        throw RequestError("--trace draws one CTA's pipeline by its model, and this plan has none");
    Json out = pipeline_trace(document.at(list)[0].at("pipeline"));
    out["otherData"] = {{"command", text_at(document.at("context"), "command")}, {"plan", subject_of(document, document.at(list)[0])}};
    return out;
}

/// A ledger as what it says of model and planner now, which needs no GPU.
Json validated(const std::string& text, const std::string& file, const std::string& command) {
    const Ledger ledger = read_ledger(text, file);
    const auto machine = std::make_shared<const Machine>(shipped_machine(ledger.machine_id));  // what a ledger names is no file to be read
    const Validation validation =
        validation_of({ledger}, machine, [](std::size_t count, const auto& work) { in_parallel(count, 0, work); });
    return validation_document(context_of(*machine, command), {validation});
}

/// Lines of plans, as `sweep --plan-only` writes them, as one document of their first plans.
Json planned_lines(const Json& head, std::string_view text) {
    Json out = head;
    out["schema"] = "rooftile/plans/1";
    out["rows"] = Json::array();
    for (std::size_t begin = text.find('\n') + 1; begin > 0 && begin < text.size(); begin = text.find('\n', begin) + 1) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        out["rows"].push_back(parsed_line(text.substr(begin, end - begin)));
        if (end == text.size()) break;
    }
    return out;
}

/// A document, or lines of a run as the document that reports on it.
Json document_of(const std::string& file, const std::string& command) {
    const std::string text = read_whole_file(file);
    Json document = Json::parse(text, nullptr, false);
    if (!document.is_discarded()) {
        if (!document.is_object() || text_at(document, "schema").empty())
            throw RequestError(fmt::format("{}: no document of rooftile: it has no schema", file));
        return document;
    }
    const Json head = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
    const std::string schema = head.is_object() ? text_at(head, "schema") : "";
    if (schema == "rooftile/ledger/1") return validated(text, file, command);
    if (schema == "rooftile/plan/1") return planned_lines(head, text);
    if (schema == "rooftile/measurement/1") {
        SuiteRecord record = read_suite_record(text, file);
        if (record.shapes.empty()) throw RequestError(fmt::format("{}: no problem in it is complete", file));
        return sweep_document(sweep_report({std::move(record)}));
    }
    throw RequestError(fmt::format("{}: neither a document of rooftile nor lines of a run", file));
}

std::vector<PageDocument> documents_of(const Given& given, std::string_view verb, const std::string& command) {
    std::vector<PageDocument> out;
    for (const std::string& file : given.list("file")) {
        try {
            out.push_back({std::filesystem::path(file).filename().string(), document_of(file, command)});
        } catch (const nlohmann::json::exception& error) { throw RequestError(fmt::format("{}: {}", file, error.what())); }
    }
    if (out.empty()) throw RequestError(fmt::format("report {0} needs a file: report {0} FILE.json", verb));
    return out;
}

int report_page(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    if (output.file.empty()) throw RequestError("report page writes a file: -o page.html");
    check_writable(output);
    const std::vector<PageDocument> documents = documents_of(given, "page", invocation.command);
    try {
        write_result(page_html(documents, invocation.command), output);
    } catch (const nlohmann::json::exception& error) {
        throw RequestError(fmt::format("a document lacks what its schema promises: {}", error.what()));
    }
    return int(ExitCode::done);
}

/// Pictures of recorded documents: as SVG, or as JSON with their data and Vega-Lite specifications.
int report_pictures(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_picture_files(given);
    const std::vector<PageDocument> documents = documents_of(given, "pictures", invocation.command);
    if (documents.size() > 1) throw RequestError("report pictures takes one file; report page shows several");
    try {
        const std::vector<Picture> pictures = asked_pictures(given, documents[0].document);
        write_pictures(given, documents[0].document, invocation.command);
        std::string text;
        for (const Picture& picture : pictures) text += fmt::format("{:14} {}\n", picture.id, picture.title);
        write_result(output.json ? json_text(pictures_document(documents[0].document, pictures)) : text, output);
    } catch (const nlohmann::json::exception& error) { throw RequestError(fmt::format("{}: {}", documents[0].name, error.what())); }
    return int(ExitCode::done);
}

}  // namespace

OutputFlags file_flags(const Given& given, const char* key) {
    OutputFlags flags;
    flags.file = given.text(key);
    flags.flag = given.name(key);
    return flags;
}

std::vector<Field> picture_fields(bool of_one_run) {
    const char* group = "Pictures";
    std::vector<Field> out = {{"svg", "FILE", "Draw what was found into FILE, one picture below the other", group},
                              {"picture", "NAME", "Draw this one alone; another name lists them", group}};
    if (of_one_run) out.push_back({"html", "FILE", "Write one page of it to be sent, with pictures and reasons that unfold", group});
    return out;
}

bool wants_pictures(const Given& given) {
    bool any = false;
    for (const char* key : file_keys) any = any || given.has(key);
    if (given.has("picture") && !given.has("svg")) throw RequestError(given.name("picture") + " needs " + given.name("svg") + " FILE");
    return any;
}

bool wants_picture(const Given& given, std::string_view id) {
    return given.has("html") || (given.has("svg") && (!given.has("picture") || given.text("picture") == id));
}

void check_picture_files(const Given& given) {
    for (const char* key : file_keys)
        if (given.has(key)) check_writable(file_flags(given, key));
}

void write_pictures(const Given& given, const Json& document, const std::string& command) {
    if (given.has("svg")) write_result(svg_text(asked_pictures(given, document)), file_flags(given, "svg"));
    if (given.has("trace")) write_result(json_text(trace_of(document)), file_flags(given, "trace"));
    if (given.has("html")) write_result(page_html({{text_at(document, "schema"), document}}, command), file_flags(given, "html"));
}

void add_report_pictures(std::vector<Verb>& verbs) {
    const char* group = "Options";
    const Field files = {"file", "FILE...",
                         "Documents of plan, measure, report sweep, validate or simulate; lines of sweep, suite or ledger", group,
                         FieldKind::positional};
    verbs.push_back({.path = "report page",
                     .meaning = "One HTML file to be sent: pictures, figures, reasons that unfold; runs side by side",
                     .fields = {files, {"out", "FILE", "The page", group, FieldKind::value, 'o'}},
                     .documents = Documents::none,
                     .examples = "Examples:\n  rooftile plan OPERATION ... --explain=all --map --json -o plan.json\n"
                                 "  rooftile report page plan.json draw-7.jsonl -o page.html\n",
                     .synopsis = "FILES... -o page.html",
                     .run = [](const Given& given, const OutputFlags&, const Invocation& invocation) {
                         return report_page(given, output_flags(given), invocation);
                     }});
    const Field one = {"file", "FILE...", "A document, or lines of a run", group, FieldKind::positional};
    verbs.push_back({.path = "report pictures",
                     .meaning = "What can be drawn of a document: as SVG, or with --json as data and Vega-Lite",
                     .fields = joined_fields({std::vector<Field>{one}, picture_fields(false)}),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile report pictures plan.json --svg tiles.svg --picture tile_map\n"
                                 "  rooftile report pictures plan.json --json\n",
                     .synopsis = "FILE.json",
                     .run = report_pictures});
}

}  // namespace rooftile::cli
