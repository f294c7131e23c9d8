// The document `rooftile/measurement/1` of any operation, and measured rows for a terminal;
// docs/schema/measurement-1.json is the document's JSON Schema.
#pragma once

#include <string>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// One row, which names its problem.
Json measured_row_json(const Measurement& row);
/// A row that is no result (wrong, or above a roof) has null figures and says why in `invalid`.
Json measurement_document(const DocumentContext& context, const std::vector<Measurement>& rows,
                          const std::vector<Timing>& timings = {}, const std::vector<std::string>& notes = {});

/// Rows that stand alone, as --jsonl writes them while a suite runs: each with the `notes` of its problem.
std::vector<Json> measurement_lines(const DocumentContext& context, const std::vector<Measurement>& rows,
                                    const std::vector<std::string>& notes);
/// The row of a problem that no plan fits: null figures, config and rank, `plans` 0, the reason in `invalid`.
Json infeasible_line(const DocumentContext& context, const PlanSet& plans, const std::vector<SuiteLayer>& layers,
                     Mode mode);

/// Rows of one problem, plan 1 first. There is one at least.
std::string measurement_text(const DocumentContext& context, const std::vector<Measurement>& rows,
                             const Terminal& terminal);

/// Whether the row's results were right, what was compared, and where they were not.
std::string verification_text(const Measurement& row, const Terminal& terminal);

}  // namespace rooftile
