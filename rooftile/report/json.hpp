// The documents `rooftile/plan/1` and `rooftile/measurement/1`; docs/command-line.md lists every key,
// docs/schema/ holds their JSON Schemas.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/explanation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile {

using Json = nlohmann::ordered_json;

/// `rooftile/plan/1`. Where nothing fits: the same document with empty `plans` and `infeasible`.
/// `explanations` are of all plans, or none.
Json plan_document(const DocumentContext& context, const std::variant<Plans, Infeasible>& outcome,
                   const std::vector<Explanation>& explanations = {});

/// `rooftile/measurement/1`. A row that is no result (wrong, or above the roof) has null figures and
/// says why in `invalid`.
Json measurement_document(const DocumentContext& context, const std::vector<Measurement>& measurements,
                          const std::vector<Timing>& timings = {},
                          const std::vector<std::string>& notes = {});

/// Rows of `rooftile/measurement/1` that stand alone, as --jsonl writes them while a suite runs: each with
/// the `notes` of its problem.
std::vector<Json> measurement_lines(const DocumentContext& context, const std::vector<Measurement>& rows,
                                    const std::vector<std::string>& notes);
/// The row of a problem that no plan fits: null figures, config and rank, `plans` 0, the reason in `invalid`.
Json infeasible_line(const DocumentContext& context, const Infeasible& infeasible,
                     const std::vector<SuiteLayer>& layers, Mode mode);

/// Why a measurement's figures are no result; empty where they are one.
std::string why_no_result(const Measurement& measurement);

/// What the documents hold of these, for other documents that speak of them.
Json context_json(const DocumentContext& context);
Json problem_json(const GemmProblem& problem);
Json config_json(const GemmConfig& config);
Json resources_json(const Resources& resources);
Json derivation_json(const std::vector<Step>& steps);
Json rejected_json(const Rejected& rejected);

/// {samples ratio ratio_low ratio_high first_ratio}; null where there was none.
Json runoff_json(const std::optional<Runoff>& runoff);

/// The document without its `plans` or `rows`: the first line of --jsonl.
Json context_line(const Json& document);
/// One object a plan or row, each with `machine` and `problem`, so that a line stands alone.
std::vector<Json> row_lines(const Json& document);

/// A whole number as an integer, any other as it is, null where unknown or not finite.
Json json_number(std::optional<double> value);

/// UTF-8 text; bytes that are not UTF-8 are replaced. `indent` -1: one line.
std::string json_text(const Json& document, int indent = 2);

}  // namespace rooftile
