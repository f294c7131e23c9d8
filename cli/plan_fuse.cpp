#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fuse_arguments.hpp"
#include "cli/output.hpp"
#include "cli/planning.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/json.hpp"
#include "rooftile/fuse/plan_text.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 8;

struct PlanFuseFlags {
    FuseFlags fuse;
    OutputFlags output;
    bool explain = false;
};

int plan_fuse(const PlanFuseFlags& flags, const std::string& command) {
    const Format format = checked_format(flags.output);
    const FuseProblem problem = problem_of(flags.fuse);
    const FuseRequest request = request_of(flags.fuse, default_top);
    const Target target = target_of(flags.fuse.machine);
    const DocumentContext context = context_of(target.machine, command);
    const auto outcome = derive_for(target, problem, request);
    if (const auto* infeasible = std::get_if<FuseInfeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.output);
    if (format == Format::text)
        write_result(plan_text(std::get<FusePlans>(outcome), flags.explain, terminal_for(flags.output)),
                     flags.output);
    else write_result(document_text(plan_document(context, outcome), format), flags.output);
    if (format == Format::text && !target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_plan_fuse(CLI::App& plan, Invocation& invocation) {
    auto flags = std::make_shared<PlanFuseFlags>();
    CLI::App* fuse = plan.add_subcommand("fuse", "A chain of operators as one kernel");
    add_fuse_flags(*fuse, flags->fuse, default_top);
    fuse->add_flag("--explain", flags->explain, "Show every step that led to plan 1")->group("Output");
    add_output_flags(*fuse, flags->output, Documents::all);
    fuse->footer(
        "Examples:\n"
        "  rooftile plan fuse \"y = gelu(x + bias)\" --tensor \"x:bf16[8192,8192]\" --tensor "
        "\"bias:bf16[8192]\"\n"
        "  rooftile plan fuse \"y = softmax(x)\" --tensor \"x:fp32[16384,4096]\" --machine h100-sxm "
        "--explain\n"
        "  rooftile plan fuse \"h = x + r; y = layernorm(h, g, b); z = h\" --tensor \"x:bf16[16384,4096]\" "
        "\\\n"
        "    --tensor \"r:bf16[16384,4096]\" --tensor \"g:bf16[4096]\" --tensor \"b:bf16[4096]\" --json\n");
    fuse->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return plan_fuse(*flags, invocation.command); };
    });
}

}  // namespace rooftile::cli
