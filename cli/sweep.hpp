// What `sweep` and `report sweep` share.
#pragma once

#include <string>

#include "cli/output.hpp"
#include "rooftile/report/sweep_report.hpp"

namespace rooftile::cli {

/// The picture as --svg names it.
void write_svg(const SweepReport& report, const std::string& file);

}  // namespace rooftile::cli
