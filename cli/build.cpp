#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fuse_arguments.hpp"
#include "cli/gemm_arguments.hpp"
#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 8;

struct BuildFlags {
    GemmFlags gemm;
    OutputFlags output;
    std::string rank, cubin;
    bool ptx = false, sass = false;
};

/// The plan of that rank, else the first that can be built. Throws RequestError where there is none.
const GemmPlan& chosen(const Plans& plans, const std::string& rank) {
    if (!rank.empty()) {
        const auto most = std::int64_t(plans.plans.size());
        const GemmPlan& plan = plans.plans[std::size_t(whole_number("--rank", rank, 1, most) - 1)];
        if (!plan.buildable)
            throw RequestError(
                fmt::format("--rank {}: plan {} cannot be built: {}", rank, rank, plan.why_not));
        return plan;
    }
    for (const GemmPlan& plan : plans.plans)
        if (plan.buildable) return plan;
    throw RequestError(fmt::format("none of the {} plans for {} can be built: {}", plans.plans.size(),
                                   plans.machine_id, plans.plans.front().why_not));
}

Json document_of(const Kernel& kernel, const Plans& plans, DocumentContext context, bool has_sass) {
    context.kernel_hash = kernel.hash();
    const EntryInfo& entry = kernel.entry();
    return {{"schema", "rooftile/build/1"},
            {"context", context_json(context)},
            {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
            {"problem", problem_json(plans.problem)},
            {"rank", kernel.plan().rank},
            {"config", config_json(kernel.plan().config)},
            {"resources", resources_json(kernel.plan().resources)},
            {"name_expression", kernel.name_expression()},
            {"lowered_name", kernel.lowered_name()},
            {"arch", kernel.arch()},
            {"launch_registers", entry.registers},
            {"spill_store_bytes", entry.spill_store_bytes},
            {"spill_load_bytes", entry.spill_load_bytes},
            {"stack_bytes", entry.stack_bytes},
            {"local_bytes", entry.local_bytes},
            {"barriers", entry.barriers},
            {"cubin_bytes", kernel.cubin().size()},
            {"compile_seconds", kernel.compile_seconds()},
            {"from_cache", kernel.from_cache()},
            {"disassembler", has_sass},
            {"notes", plans.notes}};
}

std::string text_of(const Kernel& kernel, const Plans& plans, const Terminal& terminal) {
    const EntryInfo& entry = kernel.entry();
    const Resources& planned = kernel.plan().resources;
    auto number = [](const auto& value) { return value ? number_text(double(*value)) : std::string("?"); };
    std::string registers = fmt::format("{} a thread at launch", entry.registers);
    if (planned.producer_registers && planned.consumer_registers)
        registers += fmt::format("; setmaxnreg: producer {}, consumers {}", *planned.producer_registers,
                                 *planned.consumer_registers);
    const std::string built =
        kernel.from_cache() ? fmt::format("{} s, from the cache", number_text(kernel.compile_seconds(), 3))
                            : fmt::format("{} s, compiled", number_text(kernel.compile_seconds(), 3));
    const std::vector<Entry> entries = {
        {"architecture", kernel.arch(), ""},
        {"registers", registers, ""},
        {"accumulators", number(planned.accumulator_registers) + " a thread", ""},
        {"spills", fmt::format("{} B stored, {} B loaded", entry.spill_store_bytes, entry.spill_load_bytes),
         ""},
        {"stack, local", fmt::format("{} B, {} B", entry.stack_bytes, entry.local_bytes), ""},
        {"shared memory", number(planned.shared_bytes) + " B a CTA", ""},
        {"cubin", fmt::format("{} B", kernel.cubin().size()), ""},
        {"time", built, ""},
        {"hash", kernel.hash(), ""},
    };
    const std::string name = "  " + wrapped(displayable(kernel.name_expression()), terminal.prose() - 4, 4);
    return heading_text(plans.problem, plans.machine_id, plans.machine_name, terminal) + "\n"
           + terminal.paint(fmt::format("plan {}: {}", kernel.plan().rank, label_of(kernel.plan().config)),
                            Tone::strong)
           + "\n\n" + entries_text(entries, 2, terminal) + "\n" + name + "\n";
}

/// PTX and SASS, which take the place of the summary; empty where neither was asked for or could be had.
std::string listing_of(const Kernel& kernel, const BuildFlags& flags) {
    std::string out;
    if (flags.ptx) out += kernel.ptx();
    if (flags.sass) out += sass_of(kernel.cubin());
    return out;
}

int build_gemm(const BuildFlags& flags, const std::string& command) {
    const Format format = checked_format(flags.output);
    if (format == Format::json && (flags.ptx || flags.sass))
        throw RequestError("--json and --ptx or --sass exclude each other; give one");
    const GemmProblem problem = problem_of(flags.gemm);
    const GemmRequest request = request_of(flags.gemm, default_top);
    const Target target = target_of(flags.gemm);
    const DocumentContext context = context_of(target.machine, command);
    const auto outcome = derive_for(target, problem, request);
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.output);
    const Plans& plans = std::get<Plans>(outcome);
    const Kernel kernel = compile(chosen(plans, flags.rank));
    if (!flags.cubin.empty()) write_result(kernel.cubin(), {.file = flags.cubin, .flag = "--cubin"});
    if (format == Format::json) {
        write_result(json_text(document_of(kernel, plans, context, find_disassembler().has_value())),
                     flags.output);
        return int(ExitCode::done);
    }
    std::string text = listing_of(kernel, flags);
    const bool summary = text.empty();
    if (summary) text = text_of(kernel, plans, terminal_for(flags.output));
    write_result(text, flags.output);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_build(CLI::App& app, Invocation& invocation) {
    CLI::App* build = app.add_subcommand("build", "Compile exactly the planned kernel; needs no GPU");
    build->callback([&invocation, build] {
        if (!build->get_subcommands().empty()) return;
        invocation.run = []() -> int {
            throw RequestError("build what? rooftile build gemm --m M --n N --k K");
        };
    });
    auto flags = std::make_shared<BuildFlags>();
    CLI::App* gemm = build->add_subcommand("gemm", "A matrix product C = A B");
    add_gemm_flags(*gemm, flags->gemm, default_top);
    auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        gemm->add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group("Output");
    };
    add("--rank", flags->rank, "N", "Build plan N; default: the first that can be built");
    add("--cubin", flags->cubin, "FILE", "Write the machine code to FILE");
    gemm->add_flag("--ptx", flags->ptx, "Print the PTX")->group("Output");
    gemm->add_flag("--sass", flags->sass, "Print the SASS, where a disassembler is found")->group("Output");
    add_output_flags(*gemm, flags->output, Documents::json_only);
    gemm->footer(
        "Examples:\n"
        "  rooftile build gemm --shape 4096x14336x4096 --machine h100-sxm\n"
        "  rooftile build gemm --shape 4096x14336x4096 --tile 128x256x64 --ptx\n");
    gemm->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return build_gemm(*flags, invocation.command); };
    });
    add_build_fuse(*build, invocation);
}

}  // namespace rooftile::cli
