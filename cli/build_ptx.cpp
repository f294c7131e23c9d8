// `build ptx`: PTX that anybody's compiler wrote, Triton's as well as nvcc's, read for a person. Needs no GPU.
#include <fmt/core.h>

#include <algorithm>

#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile::cli {
namespace {

/// "sm_90a" of the line ".target sm_90a, debug"; empty where there is none.
std::string target_of_text(std::string_view ptx) {
    constexpr std::string_view head = ".target ";
    const std::size_t at = ptx.starts_with(head) ? 0 : ptx.find(fmt::format("\n{}", head));
    if (at == ptx.npos) return {};
    ptx.remove_prefix(at + head.size() + (at > 0 ? 1 : 0));
    return std::string(ptx.substr(0, ptx.find_first_of(", \t\r\n")));
}

struct AnyPtx {
    std::string text, arch;
    std::vector<std::string> entries;
};

AnyPtx read_ptx(const Given& given) {
    if (!given.has("file")) throw RequestError("build ptx: no file; give one, as in rooftile build ptx kernel.ptx");
    const std::string file = given.text("file");
    AnyPtx ptx{read_whole_file(file), {}, {}};
    ptx.arch = target_of_text(ptx.text);
    ptx.entries = ptx_entries(ptx.text);
    if (ptx.arch.empty() || ptx.entries.empty())
        throw RequestError(fmt::format("{} is no PTX: it has no {}", file, ptx.arch.empty() ? "line \".target sm_...\"" : "\".entry\""));
    if (given.has("arch")) ptx.arch = given.text("arch");
    if (given.has("entry")) {
        const std::string& name = given.text("entry");
        if (std::ranges::find(ptx.entries, name) == ptx.entries.end())
            throw RequestError(fmt::format("--entry {}: {} has {}", name, file, joined(ptx.entries)));
        ptx.entries = {name};
    }
    return ptx;
}

std::string summary_of(const AnyPtx& ptx, const std::optional<Assembled>& assembled, const Terminal& terminal) {
    const std::optional<std::string> sass = assembled ? disassemble(assembled->cubin) : std::nullopt;
    const std::vector<EntryInfo> infos = assembled ? parse_entries(assembled->log) : std::vector<EntryInfo>{};
    std::string text;
    for (const std::string& name : ptx.entries) {
        const AccessWidths accesses = sass ? sass_accesses(*sass, name) : ptx_accesses(ptx.text, name);
        std::vector<Entry> entries = {{"architecture", ptx.arch, ""}, {"parameters", parameters_text(entry_parameters(ptx.text, name)), ""}};
        if (const auto info = std::ranges::find(infos, name, &EntryInfo::name); info != infos.end()) {
            entries.push_back({"registers", fmt::format("{} a thread", info->registers), ""});
            entries.push_back({"spills", fmt::format("{} B stored, {} B loaded", info->spill_store_bytes, info->spill_load_bytes), ""});
            entries.push_back({"shared memory", fmt::format("{} B a CTA of its own", info->static_shared_bytes), ""});
        }
        entries.push_back({"global loads", widths_text(accesses.loads), sass ? "instructions of the machine code" : "of the PTX: ptxas or a disassembler was not found"});
        entries.push_back({"global stores", widths_text(accesses.stores), ""});
        text += (text.empty() ? "" : "\n") + terminal.paint(name, Tone::strong) + "\n\n" + entries_text(entries, 2, terminal);
    }
    return text;
}

int build_ptx(const Given& given, const OutputFlags& output, const Invocation&) {
    checked_format(output);
    const AnyPtx ptx = read_ptx(given);
    std::string text;
    if (given.has("ptx")) text += ptx_listing(ptx.text);
    if (given.has("sass") || text.empty()) {
        const std::optional<Assembled> assembled = assemble(ptx.text, ptx.arch);
        if (!assembled) say("no ptxas found: the CUDA toolkit has it, and so has the package nvidia-cuda-nvcc; put it on PATH or set ROOFTILE_CUDA_PATH");
        if (!given.has("sass")) text = summary_of(ptx, assembled, terminal_for(output));
        else if (assembled) text += sass_listing(assembled->cubin);
    }
    write_result(text, output);
    return int(ExitCode::done);
}

}  // namespace

void add_build_ptx(std::vector<Verb>& verbs) {
    const char* group = "Output";
    verbs.push_back({.path = "build ptx",
                     .meaning = "PTX of anybody's, Triton's too: registers, spills, how wide its accesses are; annotated",
                     .fields = {{"file", "FILE.ptx", "PTX, as a compiler writes it", "Kernel", FieldKind::positional},
                                {"entry", "NAME", "This kernel alone, of several; default: all", "Kernel"},
                                {"arch", "NAME", "What ptxas makes it for, as sm_90a; default: the file's own .target", "Kernel"},
                                {"ptx", "", "Print the PTX, annotated", group, FieldKind::on},
                                {"sass", "", "Print the SASS, annotated, where ptxas and a disassembler are found", group, FieldKind::on}},
                     .documents = Documents::text_only,
                     .examples = "Examples:\n  rooftile build ptx kernel.ptx\n  rooftile build ptx kernel.ptx --ptx\n",
                     .synopsis = "FILE.ptx",
                     .run = build_ptx});
}

}  // namespace rooftile::cli
