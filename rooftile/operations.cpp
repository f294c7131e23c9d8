#include "rooftile/core/operation.hpp"

#include "rooftile/error.hpp"

namespace rooftile {

#define ROOFTILE_OPERATION(NAME) const Operation& NAME##_operation();
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION

std::span<const Operation* const> operations() {
    static const Operation* const all[] = {
#define ROOFTILE_OPERATION(NAME) &NAME##_operation(),
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION
    };
    return all;
}

const Operation* find_operation(std::string_view name) {
    for (const Operation* operation : operations())
        if (operation->name() == name) return operation;
    return nullptr;
}

PlanSet Operation::derive(const std::shared_ptr<const Machine>& machine, const Problem& problem, const Own& request) const {
    PlanSet set = plans(machine, problem, request);
    for (Plan& plan : set.plans)
        if (plan.time_us) plan.interval = predicted_interval(*machine, problem, *plan.time_us);
    if (!set.plans.empty() && set.plans[0].time_us && !set.plans[0].interval)
        set.why_no_interval = why_no_interval(*machine, problem, *set.plans[0].time_us);
    return set;
}

Problem problem_with_work(const Operation& operation, const Given& given) {
    Problem problem = operation.problem(given);
    for (const TensorInfo& tensor : operation.tensors(problem)) {
        std::string extents;
        bool none = false;
        for (const Extent& extent : tensor.extents) {
            extents += (extents.empty() ? "" : ",") + std::to_string(extent.most);
            none |= extent.most == 0;
        }
        if (none) throw RequestError("nothing to do: " + tensor.name + " is [" + extents + "]");
    }
    return problem;
}

PlanSet derive_part(std::string_view name, std::shared_ptr<const Machine> machine, const Given& given) {
    const Operation* operation = find_operation(name);
    if (!operation) {
        PlanSet none;
        none.machine_id = machine->id;
        none.machine_name = machine->name;
        none.refusal =
            Refusal{Reason::instruction, "this build has no operation " + std::string(name), std::nullopt, std::nullopt};
        return none;
    }
    return operation->derive(std::move(machine), operation->problem(given), operation->request(given, {.top = 1}));
}

}  // namespace rooftile
