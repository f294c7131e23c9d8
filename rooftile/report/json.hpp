// The documents' JSON: what all of them share, and `rooftile/plan/1` of any operation. docs/command-line.md lists
// every key, docs/schema/ holds their JSON Schemas.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile {

using Json = nlohmann::ordered_json;

/// A whole number as an integer, any other as it is, null where unknown or not finite.
Json json_number(std::optional<double> value);
/// The same; counts, bytes and cycles, by their unit, to the nearest whole number.
Json json_number(std::optional<double> value, std::string_view unit);
/// Null where it is empty.
Json text_or_null(std::string_view text);
Json to_json(const Value& value);
Json to_json(const Record& record);
/// What an object holds, as to_json() made it.
Record record_of(const Json& object);

/// A line of a recorded run. Throws nlohmann::json::exception where it is no JSON, RequestError where an object names a key twice:
/// readers would differ in which of the two they take.
Json parsed_line(std::string_view line);

/// What an object has under `key`; empty where it has nothing of that kind.
std::string text_at(const Json& object, const char* key);
std::optional<double> number_at(const Json& object, const char* key);
/// The same of a time, a rate or a ratio, and of an extent. Throws RequestError where it is not above 0 and below 1e15 (as
/// microseconds: thirty years), or no whole number below 2^53.
std::optional<double> positive_at(const Json& object, const char* key);
std::int64_t extent_at(const Json& object, const char* key);

/// `rooftile/plan/1`. Where nothing fits: the same document with empty `plans` and `infeasible`.
/// `details` are added to the plans, one each; or none. Without `derivations` the plans' steps are left out.
Json plan_document(const DocumentContext& context, const PlanSet& plans, const std::vector<Record>& details = {},
                   bool derivations = true);

/// What the documents hold of these, for other documents that speak of them.
Json context_json(const DocumentContext& context);
Json machine_json(const DocumentContext& context);
Json problem_json(const Problem& problem);  ///< `op` first
Json derivation_json(const std::vector<Step>& steps);
Json rejected_json(const Rejected& rejected);

/// The document without its `plans` or `rows`: the first line of --jsonl.
Json context_line(const Json& document);
/// One object a plan or row, each with `machine` and `problem`, so that a line stands alone.
std::vector<Json> row_lines(const Json& document);

/// UTF-8 text; bytes that are not UTF-8 are replaced. `indent` -1: one line.
std::string json_text(const Json& document, int indent = 2);

}  // namespace rooftile
