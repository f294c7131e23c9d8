// The document `rooftile/measurement/1` of GEMMs; docs/schema/measurement-1.json is its JSON Schema.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/measured_json.hpp"

namespace rooftile {

/// A row that is no result (wrong, or above the roof) has null figures and says why in `invalid`.
Json measurement_document(const DocumentContext& context, const std::vector<Measurement>& measurements,
                          const std::vector<Timing>& timings = {},
                          const std::vector<std::string>& notes = {});

/// Rows that stand alone, as --jsonl writes them while a suite runs: each with the `notes` of its problem.
std::vector<Json> measurement_lines(const DocumentContext& context, const std::vector<Measurement>& rows,
                                    const std::vector<std::string>& notes);
/// The row of a problem that no plan fits: null figures, config and rank, `plans` 0, the reason in `invalid`.
Json infeasible_line(const DocumentContext& context, const Infeasible& infeasible,
                     const std::vector<SuiteLayer>& layers, Mode mode);

/// Why a measurement's figures are no result; empty where they are one.
std::string why_no_result(const Measurement& measurement);

Json problem_json(const GemmProblem& problem);
Json config_json(const GemmConfig& config);

}  // namespace rooftile
