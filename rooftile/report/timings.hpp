// What the parts of a run took, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Seconds each part of the run took.
std::string timings_text(const std::vector<Timing>& timings, const Terminal& terminal);

}  // namespace rooftile
