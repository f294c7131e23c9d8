// Measured fused kernels: the document `rooftile/measurement/1` and a table.
#pragma once

#include <string>

#include "rooftile/measure/fuse_row.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

Json measurement_document(const DocumentContext& context, const FuseRun& run);

/// Heading, one line a plan, the baselines of the same run.
std::string measurement_text(const DocumentContext& context, const FuseRun& run, const Terminal& terminal);

}  // namespace rooftile
