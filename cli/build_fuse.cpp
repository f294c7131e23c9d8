#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/build_fuse_suite.hpp"
#include "cli/fuse_arguments.hpp"
#include "cli/fuse_build.hpp"
#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/json.hpp"
#include "rooftile/fuse/plan_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 64;

struct BuildFuseFlags {
    FuseFlags fuse;
    OutputFlags output;
    std::string rank, cubin, suite, into, filter;
    bool source = false, ptx = false, sass = false;
};

const FusePlan& chosen(const FusePlans& plans, const std::string& rank) {
    const auto most = std::int64_t(plans.plans.size());
    const FusePlan& plan =
        plans.plans[rank.empty() ? 0 : std::size_t(whole_number("--rank", rank, 1, most) - 1)];
    if (!plan.buildable)
        throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
    return plan;
}

Json document_of(const FuseKernel& kernel, const FusePlans& plans, DocumentContext context) {
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

std::string text_of(const FuseKernel& kernel, const FusePlans& plans, const Terminal& terminal) {
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
    return fuse_heading_text(plans.problem, plans.machine_id, plans.machine_name, terminal) + "\n"
           + terminal.paint(fmt::format("plan {}: {}", kernel.plan().rank, label_of(kernel.plan().config)),
                            Tone::strong)
           + "\n\n" + entries_text(entries, 2, terminal);
}

/// Source, PTX and SASS, which take the place of the summary; empty where none was asked for or could be had.
std::string listing_of(const FuseKernel& kernel, const BuildFuseFlags& flags) {
    std::string out;
    if (flags.source) out += kernel.text();
    if (flags.ptx) out += kernel.ptx();
    if (flags.sass) out += sass_of(kernel.cubin());
    return out;
}

int build_fuse(const BuildFuseFlags& flags, const std::string& command) {
    const Format format = checked_format(flags.output);
    if (format == Format::json && (flags.source || flags.ptx || flags.sass))
        throw RequestError("--json and --source, --ptx or --sass exclude each other; give one");
    if (!flags.suite.empty()) {
        if (!flags.rank.empty() || !flags.cubin.empty() || flags.source || flags.ptx || flags.sass)
            throw RequestError(
                "--suite builds plan 1 of every problem into --into FOLDER; leave out --rank, "
                "--cubin, --source, --ptx and --sass");
        return build_fuse_suite({flags.fuse, flags.output, flags.suite, flags.into, flags.filter}, command);
    }
    for (const auto& [name, value] : {std::pair{"--into", &flags.into}, {"--filter", &flags.filter}})
        if (!value->empty()) throw RequestError(fmt::format("{} needs --suite FILE", name));
    const FuseProblem problem = problem_of(flags.fuse);
    const FuseRequest request = request_of(flags.fuse, default_top);
    const Target target = target_of(flags.fuse.machine);
    const DocumentContext context = context_of(target.machine, command);
    const auto outcome = derive_for(target, problem, request);
    if (const auto* infeasible = std::get_if<FuseInfeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.output);
    const FusePlans& plans = std::get<FusePlans>(outcome);
    const FuseKernel kernel = compile(chosen(plans, flags.rank));
    if (!flags.cubin.empty()) write_result(kernel.cubin(), {.file = flags.cubin, .flag = "--cubin"});
    if (format == Format::json) {
        write_result(json_text(document_of(kernel, plans, context)), flags.output);
        return int(ExitCode::done);
    }
    std::string text = listing_of(kernel, flags);
    if (text.empty()) text = text_of(kernel, plans, terminal_for(flags.output));
    write_result(text, flags.output);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_build_fuse(CLI::App& build, Invocation& invocation) {
    auto flags = std::make_shared<BuildFuseFlags>();
    CLI::App* fuse = build.add_subcommand("fuse", "A chain of operators as one kernel");
    add_fuse_flags(*fuse, flags->fuse, default_top);
    auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        fuse->add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group("Output");
    };
    add("--rank", flags->rank, "N", "Build plan N; default 1");
    add("--cubin", flags->cubin, "FILE", "Write the machine code to FILE");
    add("--suite", flags->suite, "FILE",
        "Build plan 1 of all problems of FILE, and their operators one by one; a JSON document names them");
    add("--into", flags->into, "FOLDER", "Of a suite: where the machine code goes");
    add("--filter", flags->filter, "TEXT",
        "Of a suite: only problems whose \"group ROWSxCOLUMNS type\" holds TEXT");
    fuse->add_flag("--source", flags->source, "Print the generated CUDA C++")->group("Output");
    fuse->add_flag("--ptx", flags->ptx, "Print the PTX")->group("Output");
    fuse->add_flag("--sass", flags->sass, "Print the SASS, where a disassembler is found")->group("Output");
    add_output_flags(*fuse, flags->output, Documents::json_only);
    fuse->footer(
        "Examples:\n"
        "  rooftile build fuse \"y = gelu(x)\" --tensor \"x:bf16[16384,16384]\" --machine h200-sxm --source\n"
        "  rooftile build fuse \"y = rmsnorm(x, g)\" --tensor \"x:bf16[8192,4096]\" --tensor "
        "\"g:bf16[4096]\"\n");
    fuse->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return build_fuse(*flags, invocation.command); };
    });
}

}  // namespace rooftile::cli
