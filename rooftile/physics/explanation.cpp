#include "rooftile/physics/explanation.hpp"

namespace rooftile {

Explanation explain(const Machine& machine, const Plan& plan, const PlanDetail& detail) {
    const Operation& operation = *plan.operation;
    Explanation out;
    if (detail.steps) out.attainability = operation.roof_steps(machine, plan);
    if (detail.energy)
        out.energy = energy_of(operation.demand(machine, plan), machine,
                               operation.predictor(machine, {&plan, 1})(machine).front());
    return out;
}

std::vector<Explanation> explain(const Machine& machine, const PlanSet& plans, const PlanDetail& detail) {
    std::vector<Explanation> out;
    if (!detail.steps && !detail.energy) return out;
    for (const Plan& plan : plans.plans) out.push_back(explain(machine, plan, detail));
    if (!detail.steps || plans.plans.empty() || !plans.plans.front().time_us) return out;
    WinsIf found = counterfactuals(machine, plans.plans);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].wins_if = std::move(found[i]);
    return out;
}

}  // namespace rooftile
