// The verbs of GEMM that no other operation has.
#pragma once

#include <vector>

#include "cli/verb.hpp"
#include "rooftile/gemm/operation.hpp"

namespace rooftile::cli {

/// The six rungs and the planned kernel, predicted and measured.
void add_measure_ladder(std::vector<Verb>& verbs);
/// Their table from a recorded run.
void add_report_ladder(std::vector<Verb>& verbs);

}  // namespace rooftile::cli
