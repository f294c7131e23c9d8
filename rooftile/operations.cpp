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

}  // namespace rooftile
