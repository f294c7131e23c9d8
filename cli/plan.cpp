#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/fuse_arguments.hpp"
#include "cli/gemm_arguments.hpp"
#include "cli/gemm_variants.hpp"
#include "cli/output.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile::cli {
namespace {

constexpr int default_top = 8;

struct PlanFlags {
    GemmFlags gemm;
    VariantFlags variants;
    OutputFlags output;
    std::string seed;
    bool explain = false, energy = false;
    bool buildable_only = false;
};

int plan_gemm(const PlanFlags& flags, const std::string& command) {
    const Format format = checked_format(flags.output);
    const GemmProblem problem = problem_of(flags.gemm);
    GemmRequest request = request_of(flags.gemm, default_top);
    request.buildable_only = flags.buildable_only;
    const Variants variants = variants_of(flags.variants, flags.gemm);
    if (!flags.seed.empty() && variants.sample == 0) throw RequestError("--seed needs --sample N");
    const auto seed = flags.seed.empty() ? std::int64_t{1}
                                         : whole_number("--seed", flags.seed, 0, (std::int64_t{1} << 53) - 1);
    const Target target = target_of(flags.gemm);
    const DocumentContext context = context_of(target.machine, command);
    const auto outcome = derive_variants(target, problem, request, variants, std::uint64_t(seed));
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome))
        return report_infeasible(*infeasible, context, flags.output);
    const Plans& plans = std::get<Plans>(outcome);
    std::vector<Explanation> explanations;
    if (flags.explain || flags.energy)
        explanations = explain(
            target.machine, plans,
            {.attainability = flags.explain, .energy = flags.energy, .counterfactuals = flags.explain});
    if (format == Format::text)
        write_result(plan_text(plans, flags.explain, terminal_for(flags.output), explanations), flags.output);
    else write_result(document_text(plan_document(context, outcome, explanations), format), flags.output);
    // A document carries the note itself; CSV has no place for it.
    if ((format == Format::text || format == Format::csv) && !target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

}  // namespace

void add_plan(CLI::App& app, Invocation& invocation) {
    CLI::App* plan = app.add_subcommand("plan", "Derive a kernel's parameters from the hardware's numbers");
    plan->callback([&invocation, plan] {
        if (!plan->get_subcommands().empty()) return;
        invocation.run = []() -> int {
            throw RequestError(
                "plan what? rooftile plan gemm --m M --n N --k K, or rooftile plan fuse EXPRESSION");
        };
    });

    auto flags = std::make_shared<PlanFlags>();
    CLI::App* gemm = plan->add_subcommand("gemm", "A matrix product C = A B");
    add_gemm_flags(*gemm, flags->gemm, default_top);
    add_variant_flags(*gemm, flags->variants);
    gemm->add_option("--seed", flags->seed, "Of what --sample draws; default 1")
        ->type_name("N")
        ->check(refuse_empty)
        ->group("Other plans beside the best");
    gemm->add_flag("--explain", flags->explain,
                   "Show every step that led to plan 1, how its time comes about, and why the others lost")
        ->group("Output");
    gemm->add_flag("--energy", flags->energy,
                   "Show the joules of a launch by term, and the plan of the least")
        ->group("Output");
    gemm->add_flag("--buildable-only", flags->buildable_only, "Leave out plans that no kernel exists for yet")
        ->group("Output");
    add_output_flags(*gemm, flags->output, Documents::all);
    gemm->footer(
        "Examples:\n"
        "  rooftile plan gemm --m 4096 --n 14336 --k 4096\n"
        "  rooftile plan gemm --shape 8192x8192x8192 --machine h100-sxm --explain\n"
        "  rooftile plan gemm --shape 4096x4096x4096 --tile 128x256x64 --stages 4 --json\n"
        "  rooftile plan gemm --shape 64x4096x4096 --machine h20 --set \"dram.bandwidth=4.8 TB/s\"\n");
    gemm->callback([&invocation, flags] {
        invocation.run = [&invocation, flags] { return plan_gemm(*flags, invocation.command); };
    });

    add_plan_fuse(*plan, invocation);
}

}  // namespace rooftile::cli
