#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/gemm/verbs.hpp"
#include "cli/target.hpp"
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/records.hpp"
#include "cli/listing.hpp"
#include "cli/output.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile::cli {
namespace {

Json document_of(const Kernel& kernel, const PlanSet& plans, DocumentContext context, bool has_sass) {
    context.kernel_hash = kernel.hash();
    const EntryInfo& entry = kernel.entry();
    return {{"schema", "rooftile/build/1"},
            {"context", context_json(context)},
            {"machine", {{"id", context.machine_id}, {"name", context.machine_name}}},
            {"problem", problem_json(plans.problem)},
            {"rank", kernel.plan().rank},
            {"config", config_json(kernel.plan().config)},
            {"resources", to_json(resources_record(kernel.plan().resources))},
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

std::string text_of(const Kernel& kernel, const PlanSet& plans, const Terminal& terminal) {
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
    return heading_text(plans.problem.own.as<GemmProblem>(), plans.machine_id, plans.machine_name, terminal) + "\n"
           + terminal.paint(fmt::format("plan {}: {}", kernel.plan().rank, label_of(kernel.plan().config)),
                            Tone::strong)
           + "\n\n" + entries_text(entries, 2, terminal) + "\n" + name + "\n";
}

/// PTX and SASS, which take the place of the summary; empty where neither was asked for or could be had.
std::string listing_of(const Kernel& kernel, const Given& given) {
    std::string out;
    if (given.has("ptx")) out += kernel.ptx();
    if (given.has("sass")) out += sass_of(kernel.cubin());
    return out;
}

int build(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    if (format == Format::json && (given.has("ptx") || given.has("sass")))
        throw RequestError("--json and --ptx or --sass exclude each other; give one");
    const Problem problem = gemm_operation().problem(given);
    const Own request = gemm_operation().request(given, {});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return report_refusal(plans, context, output);
    const Kernel kernel = compile(chosen_plan(plans, given).own.as<GemmPlan>());
    if (given.has("cubin")) write_result(kernel.cubin(), {.file = given.text("cubin"), .flag = "--cubin"});
    if (format == Format::json) {
        write_result(json_text(document_of(kernel, plans, context, find_disassembler().has_value())), output);
        return int(ExitCode::done);
    }
    std::string text = listing_of(kernel, given);
    if (text.empty()) text = text_of(kernel, plans, terminal_for(output));
    write_result(text, output);
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_gemm_build(std::vector<Verb>& verbs) {
    const char* group = "Output";
    const Field own[] = {{"rank", "N", "Build plan N; default: the first that can be built", group},
                         {"cubin", "FILE", "Write the machine code to FILE", group},
                         {"ptx", "", "Print the PTX", group, FieldKind::on},
                         {"sass", "", "Print the SASS, where a disassembler is found", group, FieldKind::on}};
    verbs.push_back(
        {.path = "build gemm",
         .meaning = std::string(gemm_operation().meaning()),
         .fields = joined_fields({gemm_operation().fields(), target_fields(), own}),
         .documents = Documents::json_only,
         .examples = "Examples:\n"
                     "  rooftile build gemm --shape 4096x14336x4096 --machine h100-sxm\n"
                     "  rooftile build gemm --shape 4096x14336x4096 --tile 128x256x64 --ptx\n",
         .synopsis = std::string(gemm_operation().example()),
         .run = build});
}

}  // namespace rooftile::cli
