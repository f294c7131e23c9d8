// Measured fused kernels: the document `rooftile/measurement/1` and a table.
#pragma once

#include <string>
#include <vector>

#include "rooftile/fuse/measurement.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

Json measurement_document(const DocumentContext& context, const FuseRun& run);

/// Rows that stand alone, as a suite's run appends them.
std::vector<Json> measurement_lines(const DocumentContext& context, const FuseRun& run);
/// The row of a problem that no plan fits: null figures, config and rank, `plans` 0, the reason in `invalid`.
Json infeasible_line(const DocumentContext& context, const FuseInfeasible& infeasible,
                     const std::vector<SuiteLayer>& layers, Mode mode);

/// Heading, one line a plan, the baselines of the same run.
std::string measurement_text(const DocumentContext& context, const FuseRun& run, const Terminal& terminal);

}  // namespace rooftile
