// The ladder as a table for a terminal.
#pragma once

#include <string>

#include "rooftile/gemm/ladder_row.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Heading, one row a rung (predicted, measured, their ratio, TFLOP/s, times the rung before, share of
/// cuBLASLt's speed), then why each rung should take as long as predicted, and why a row has no result.
std::string ladder_text(const DocumentContext& context, const LadderRun& run, const Terminal& terminal);

}  // namespace rooftile
