// `build source`: what the compiler makes of a kernel that the user wrote. Needs no GPU.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/disassemble.hpp"

namespace rooftile::cli {
namespace {

std::string summary_of(const SourceRequest& request, const SourceCode& code, const Terminal& terminal) {
    const EntryInfo& entry = code.compiled.entries.front();
    const std::string& name = code.compiled.lowered_names.front();
    const auto sass = disassemble(code.compiled.cubin);
    const AccessWidths accesses = sass ? sass_accesses(*sass, name) : ptx_accesses(code.ptx, name);
    const std::vector<Entry> entries = {
        {"architecture", code.source.arch, ""},
        {"parameters", parameters_text(code.parameters), ""},
        {"registers", fmt::format("{} a thread at launch", entry.registers), ""},
        {"spills", fmt::format("{} B stored, {} B loaded", entry.spill_store_bytes, entry.spill_load_bytes),
         ""},
        {"stack, local", fmt::format("{} B, {} B", entry.stack_bytes, entry.local_bytes), ""},
        {"shared memory", fmt::format("{} B a CTA of its own", entry.static_shared_bytes), ""},
        {"global loads", widths_text(accesses.loads),
         sass ? "instructions of the machine code" : "of the PTX: no disassembler was found"},
        {"global stores", widths_text(accesses.stores), ""},
        {"cubin", fmt::format("{} B", code.compiled.cubin.size()), ""}};
    return terminal.paint(fmt::format("{} of {}", request.entry, request.path), Tone::strong) + "\n\n"
           + entries_text(entries, 2, terminal);
}

int build_source(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    const SourceRequest request = source_code_request(given);
    const Target target = target_of(given);
    if (target.machine->arch.empty())
        throw RequestError(
            fmt::format("{}: the machine file names no architecture to compile for", target.machine->id));
    std::optional<Progress> progress(std::in_place, "compiling");
    const SourceCode code = compile_source_code(request, target.machine->arch);
    progress.reset();
    if (given.has("cubin"))
        write_result(code.compiled.cubin, {.file = given.text("cubin"), .flag = "--cubin"});
    std::string text;
    if (given.has("ptx")) text += ptx_listing(code.ptx);
    if (given.has("sass")) text += sass_listing(code.compiled.cubin);
    write_result(text.empty() ? summary_of(request, code, terminal_for(output)) : text, output);
    if (!request.left_out.empty()) say(fmt::format("left out, for the host: {}", fmt::join(request.left_out, ", ")));
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

std::vector<Field> build_source_fields() {
    const char* group = "Output";
    std::vector<Field> out;
    for (const Field& field : source_fields())
        if (field.key == "file" || field.key == "entry" || field.key == "include") out.push_back(field);
    const Field own[] = {
        {"cubin", "FILE", "Write the machine code to FILE", group},
        {"ptx", "", "Print the PTX, annotated", group, FieldKind::on},
        {"sass", "", "Print the SASS, annotated, where a disassembler is found", group, FieldKind::on}};
    return joined_fields({out, target_fields(), own});
}

}  // namespace

void add_build_source(std::vector<Verb>& verbs) {
    verbs.push_back(
        {.path = "build source",
         .meaning =
             "A kernel of your own: registers, spills, how wide its accesses are; PTX and SASS annotated",
         .fields = build_source_fields(),
         .documents = Documents::text_only,
         .examples = "Examples:\n  rooftile build source my.cu --entry scale --machine h100-sxm\n"
                     "  rooftile build source my.cu --entry scale --ptx\n",
         .synopsis = "FILE.cu --entry NAME",
         .run = build_source});
}

}  // namespace rooftile::cli
