// `rooftile machine probe`.
#pragma once

#include "cli/verbs.hpp"

namespace rooftile::cli {

void add_machine_probe(CLI::App& machine, Invocation& invocation);

}  // namespace rooftile::cli
