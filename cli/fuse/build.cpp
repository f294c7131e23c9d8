#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/fuse/verbs.hpp"
#include "cli/target.hpp"
#include "cli/fuse/build_suite.hpp"
#include "cli/fuse/kernel_json.hpp"
#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/json.hpp"
#include "rooftile/fuse/plan_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

Json document_of(const FuseKernel& kernel, const PlanSet& plans, DocumentContext context) {
    context.kernel_hash = kernel.hash();
    Json document = {{"schema", "rooftile/build/1"},
                     {"context", context_json(context)},
                     {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
                     {"problem", problem_json(plans.problem)}};
    document.update(kernel_json(kernel));
    document.erase("kernel_hash");  // it stands in the context
    const Accesses accesses = accesses_of(kernel.ptx());
    document["global_loads"] = {{"all", accesses.loads}, {"of_16_bytes", accesses.loads_16}};
    document["global_stores"] = {{"all", accesses.stores}, {"of_16_bytes", accesses.stores_16}};
    document["notes"] = plans.notes;
    return document;
}

std::string text_of(const FuseKernel& kernel, const PlanSet& plans, const Terminal& terminal) {
    const EntryInfo& entry = kernel.entry();
    const Accesses accesses = accesses_of(kernel.ptx());
    const std::vector<Entry> entries = {
        {"kernel", kernel.name(), ""},
        {"architecture", kernel.arch(), ""},
        {"registers", fmt::format("{} a thread", entry.registers),
         kernel.plan().resources.registers ? fmt::format("{} planned", *kernel.plan().resources.registers)
                                           : ""},
        {"spills", fmt::format("{} B stored, {} B loaded", entry.spill_store_bytes, entry.spill_load_bytes),
         ""},
        {"shared memory", fmt::format("{} B a CTA", shared_bytes(kernel)), ""},
        {"global loads",
         fmt::format("{} of 16 B, {} others", accesses.loads_16, accesses.loads - accesses.loads_16),
         "instructions of the code"},
        {"global stores",
         fmt::format("{} of 16 B, {} others", accesses.stores_16, accesses.stores - accesses.stores_16), ""},
        {"cubin", fmt::format("{} B", kernel.cubin().size()), ""},
        {"time",
         fmt::format("{} s, {}", number_text(kernel.compile_seconds(), 3),
                     kernel.from_cache() ? "from the cache" : "compiled"),
         ""},
        {"hash", kernel.hash(), ""},
    };
    return fuse_heading_text(plans.problem.own.as<ExpressionGraph>(), plans.machine_id, plans.machine_name, terminal) + "\n"
           + terminal.paint(fmt::format("plan {}: {}", kernel.plan().rank, label_of(kernel.plan().config)),
                            Tone::strong)
           + "\n\n" + entries_text(entries, 2, terminal);
}

/// Source, PTX and SASS, which take the place of the summary; empty where none was asked for or could be had.
std::string listing_of(const FuseKernel& kernel, const Given& given) {
    std::string out;
    if (given.has("source")) out += kernel.text();
    if (given.has("ptx")) out += kernel.ptx();
    if (given.has("sass")) out += sass_of(kernel.cubin());
    return out;
}

int build(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const bool listing = given.has("source") || given.has("ptx") || given.has("sass");
    if (format == Format::json && listing)
        throw RequestError("--json and --source, --ptx or --sass exclude each other; give one");
    if (given.has("suite")) {
        if (given.has("rank") || given.has("cubin") || listing)
            throw RequestError(
                "--suite builds plan 1 of every problem into --into FOLDER; leave out --rank, "
                "--cubin, --source, --ptx and --sass");
        return build_fuse_suite(given, output, invocation);
    }
    for (const char* key : {"into", "filter"})
        if (given.has(key)) throw RequestError(fmt::format("{} needs --suite FILE", given.name(key)));
    constexpr int default_top = 64;
    const Problem problem = fuse_operation().problem(given);
    const Own request = fuse_operation().request(given, {.top = default_top});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return report_refusal(plans, context, output);
    const FuseKernel kernel = compile(chosen_plan(plans, given).own.as<FusePlan>());
    if (given.has("cubin")) write_result(kernel.cubin(), {.file = given.text("cubin"), .flag = "--cubin"});
    if (format == Format::json) {
        write_result(json_text(document_of(kernel, plans, context)), output);
        return int(ExitCode::done);
    }
    std::string text = listing_of(kernel, given);
    if (text.empty()) text = text_of(kernel, plans, terminal_for(output));
    write_result(text, output);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_fuse_build(std::vector<Verb>& verbs) {
    const char* group = "Output";
    const Field own[] = {
        {"rank", "N", "Build plan N; default: the first that can be built", group},
        {"cubin", "FILE", "Write the machine code to FILE", group},
        {"suite", "FILE",
         "Build plan 1 of all problems of FILE, and their operators one by one; a JSON document names them", group},
        {"into", "FOLDER", "Of a suite: where the machine code goes", group},
        {"filter", "TEXT", "Of a suite: only problems whose \"group ROWSxCOLUMNS type\" holds TEXT", group},
        {"source", "", "Print the generated CUDA C++", group, FieldKind::on},
        {"ptx", "", "Print the PTX", group, FieldKind::on},
        {"sass", "", "Print the SASS, where a disassembler is found", group, FieldKind::on}};
    verbs.push_back(
        {.path = "build fuse",
         .meaning = std::string(fuse_operation().meaning()),
         .fields = joined_fields({fuse_operation().fields(), target_fields(), own}),
         .documents = Documents::json_only,
         .examples =
             "Examples:\n"
             "  rooftile build fuse \"y = gelu(x)\" --tensor \"x:bf16[16384,16384]\" --machine h200-sxm --source\n"
             "  rooftile build fuse \"y = rmsnorm(x, g)\" --tensor \"x:bf16[8192,4096]\" --tensor "
             "\"g:bf16[4096]\"\n",
         .synopsis = std::string(fuse_operation().example()),
         .run = build});
}

}  // namespace rooftile::cli
