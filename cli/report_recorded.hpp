// `rooftile report traffic` and `report predictions`: what recorded runs say of the model.
#pragma once

#include "cli/verbs.hpp"

namespace rooftile::cli {

void add_report_recorded(CLI::App& report, Invocation& invocation);

}  // namespace rooftile::cli
