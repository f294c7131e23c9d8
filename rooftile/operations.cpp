#include "rooftile/core/operation.hpp"

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
