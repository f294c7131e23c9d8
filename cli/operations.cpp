#include "cli/verb.hpp"

namespace rooftile::cli {

#define ROOFTILE_OPERATION(NAME) void add_##NAME##_verbs(std::vector<Verb>& verbs);
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION

void add_operation_verbs(std::vector<Verb>& verbs) {
#define ROOFTILE_OPERATION(NAME) add_##NAME##_verbs(verbs);
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION
}

}  // namespace rooftile::cli
