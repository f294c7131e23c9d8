// A user's kernel measured beside the one that is derived for the same expression, its operators one by one, and copies of as many
// bytes: all in the same rounds.
#pragma once

#include <memory>

#include "rooftile/measure/measure.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/report/source_report.hpp"

namespace rooftile {

struct SourceRun {
    MeasureRun run;  ///< its rows have moved into the report
    SourceReport report;
};

/// Compiles for options.device, verifies and times as the options say. `machine` is planned for. Throws what
/// compile_source_kernel() and measure() throw; a wrong result is a row that says so.
SourceRun measure_source(const SourceRequest& request, const std::shared_ptr<const Machine>& machine,
                         MeasureOptions options);

}  // namespace rooftile
