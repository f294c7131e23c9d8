// `rooftile machine compare`.
#pragma once

#include "cli/verbs.hpp"

namespace rooftile::cli {

void add_machine_compare(CLI::App& machine, Invocation& invocation);

}  // namespace rooftile::cli
