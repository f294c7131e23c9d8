#include "cli/target.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {

std::span<const Field> target_fields() {
    static const Field fields[] = {
        {"machine", "ID|FILE",
         "One of `rooftile machine list`, or a machine file; default: the GPU here, else h100-sxm", "Machine"},
        {"numbers", "NAME=VALUE,...",
         "A machine of a few numbers, of smem, regs, bw, peak, latency and any key of a machine file: smem=256KiB,bw=1TB/s,latency=500clk", "Machine"},
        {"set", "KEY=VALUE", "Replace one number, as in --set \"dram.bandwidth=4 TB/s\"; repeatable", "Machine",
         FieldKind::list},
    };
    return fields;
}

void check_energy(const Operation& operation, const Given& given) {
    if (given.has("energy") && !operation.models_energy())
        throw RequestError(
            fmt::format("{}: the joules of {} are not modelled yet", given.name("energy"), operation.name()));
}

PlanSet derive_for(const Target& target, const Problem& problem, const Own& request) {
    PlanSet plans = problem.operation->derive(target.machine, problem, request);
    if (!target.note.empty()) plans.notes.insert(plans.notes.begin(), target.note);
    return plans;
}

int report_refusal(const PlanSet& plans, const DocumentContext& context, const OutputFlags& output) {
    const Format format = checked_format(output);
    if (format != Format::text) write_result(document_text(plan_document(context, plans, {}, false), format), output);
    say(plans.refusal->message);
    return int(ExitCode::no_plan);
}

const Plan& ranked_plan(const PlanSet& plans, const Given& given) {
    const auto most = std::int64_t(plans.plans.size());
    const Plan& plan = plans.plans[std::size_t(whole_number(given.name("rank"), given.text("rank"), 1, most) - 1)];
    if (!plan.buildable)
        throw RequestError(fmt::format("--rank {}: plan {} cannot be built: {}", plan.rank, plan.rank, plan.why_not));
    return plan;
}

}  // namespace rooftile::cli
