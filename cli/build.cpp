#include <fmt/core.h>

#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/emit/emit.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/kernel_codes.hpp"
#include "rooftile/runtime/kernel_json.hpp"

namespace rooftile::cli {
namespace {

constexpr int built_from = 64;  ///< plans that --rank may name where --top does not say

Json document_of(const CompiledKernel& kernel, const PlanSet& plans, DocumentContext context) {
    context.kernel_hash = kernel.code().hash;
    Json out = {{"schema", "rooftile/build/1"},
                {"context", context_json(context)},
                {"machine", machine_json(context)},
                {"problem", problem_json(plans.problem)}};
    out.update(kernel_json(kernel));
    out.update(to_json(on_device(*plans.problem.operation).build_record(kernel)));
    out["disassembler"] = find_disassembler().has_value();
    out["notes"] = plans.notes;
    return out;
}

/// With the plans' notes but for `said`, which stands elsewhere.
std::string text_of(const CompiledKernel& kernel, const PlanSet& plans, const std::string& said, const Terminal& terminal) {
    const Operation& operation = *plans.problem.operation;
    const KernelCode& code = kernel.code();
    const std::vector<KernelCode> codes = codes_of(kernel);
    std::vector<Entry> entries = {{"architecture", code.arch, ""}};
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const EntryInfo& entry = codes[i].entry;
        const std::string of = codes.size() > 1 ? fmt::format("kernel {}", i + 1) : "";
        entries.push_back({"registers", fmt::format("{} a thread at launch", entry.registers), of});
        entries.push_back({"spills", fmt::format("{} B stored, {} B loaded", entry.spill_store_bytes, entry.spill_load_bytes), of});
        entries.push_back({"stack, local", fmt::format("{} B, {} B", entry.stack_bytes, entry.local_bytes), of});
        entries.push_back({"cubin", fmt::format("{} B", codes[i].cubin.size()), of});
    }
    entries.push_back({"shared memory", fmt::format("{} B a CTA", kernel.shared_bytes()), codes.size() > 1 ? "the greater" : ""});
    for (Entry& own : on_device(operation).build_entries(kernel)) entries.push_back(std::move(own));
    entries.push_back({"time",
                       fmt::format("{} s, {}", number_text(code.compile_seconds, 3),
                                   code.from_cache ? "from the cache" : "compiled"),
                       ""});
    entries.push_back({"hash", code.hash, ""});
    const std::string name = "  " + wrapped(displayable(code.name), terminal.prose() - 4, 4);
    std::string notes;
    for (const std::string& note : plans.notes)
        if (note != said) notes += (notes.empty() ? "\n" : "") + entry("note", note, terminal);
    return operation.heading(plans.problem, plans.machine_id, plans.machine_name, terminal) + "\n"
           + terminal.paint(fmt::format("plan {}: {}", kernel.plan().rank, operation.label(kernel.plan())),
                            Tone::strong)
           + "\n\n" + entries_text(entries, 2, terminal) + "\n" + name + "\n" + notes;
}

/// Source, PTX and SASS, which take the place of the summary; empty where none was asked for or could be had.
std::string listing_of(const CompiledKernel& kernel, const Machine& machine, const PlanSet& plans, const Given& given) {
    std::string out;
    const std::vector<KernelCode> codes = codes_of(kernel);
    if (given.has("source")) out += emit_file(machine, plans, kernel.plan()).text;
    if (given.has("ptx")) out += ptx_listing(kernel.ptx());
    if (given.has("sass"))
        for (const KernelCode& code : codes) out += sass_listing(code.cubin);
    return out;
}

/// FILE has the first launch's machine code; a second one's, which a linker would not take beside it, goes to FILE with .2 in its name.
void write_cubins(const CompiledKernel& kernel, const std::filesystem::path& file) {
    const std::vector<KernelCode> codes = codes_of(kernel);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        std::filesystem::path to = file;
        if (i > 0) to.replace_extension(fmt::format(".{}{}", i + 1, file.extension().string()));
        write_result(codes[i].cubin, {.file = to.string(), .flag = "--cubin"});
    }
}

int build(const Operation& operation, const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    if (format == Format::json && (given.has("source") || given.has("ptx") || given.has("sass")))
        throw RequestError("--json and --source, --ptx or --sass exclude each other; give one");
    const Problem problem = problem_with_work(operation, given);
    const Own request = operation.request(given, {.top = built_from});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    std::optional<Progress> progress(std::in_place, "planning and compiling");
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return progress.reset(), report_refusal(plans, context, output);
    std::vector<std::string> refused;
    const CompiledKernel kernel = given.has("rank") ? compile(ranked_plan(plans, given)) : compile_first(plans, refused);
    progress.reset();
    for (const std::string& line : refused) say(line);
    if (given.has("cubin")) write_cubins(kernel, given.text("cubin"));
    if (format == Format::json) {
        write_result(json_text(document_of(kernel, plans, context)), output);
        return int(ExitCode::done);
    }
    std::string text = listing_of(kernel, *target.machine, plans, given);
    if (text.empty()) text = text_of(kernel, plans, target.note, terminal_for(output));
    write_result(text, output);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

std::vector<Field> build_fields(const Operation& operation) {
    const char* group = "Output";
    const Field own[] = {{"rank", "N", "Build plan N; default: the first that can be built", group},
                         {"cubin", "FILE", "Write the machine code to FILE; of a second kernel to FILE with .2 in its name", group},
                         {"source", "", "Print the CUDA C++ as `emit` writes it: one file, with a launcher", group, FieldKind::on},
                         {"ptx", "", "Print the PTX, annotated", group, FieldKind::on},
                         {"sass", "", "Print the SASS, annotated, where a disassembler is found", group, FieldKind::on}};
    return joined_fields({operation.fields(), target_fields(), own});
}

}  // namespace

void add_build(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name()), example(operation->example());
        verbs.push_back(
            {.path = "build " + name,
             .meaning = std::string(operation->meaning()),
             .fields = build_fields(*operation),
             .documents = Documents::json_only,
             .examples = fmt::format("Examples:\n  rooftile build {0} {1} --machine h100-sxm\n"
                                     "  rooftile build {0} {1} --ptx\n",
                                     name, example),
             .synopsis = example,
             .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                 return build(*operation, given, output, invocation);
             }});
    }
}

}  // namespace rooftile::cli
