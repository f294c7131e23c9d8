// What --explain and --energy add to a plan's document.
#pragma once

#include "rooftile/core/value.hpp"
#include "rooftile/physics/explanation.hpp"

namespace rooftile {

/// What stands beside a plan that was measured; empty where that is no result.
struct MeasuredRun {
    std::optional<double> time_us, joules;
};
/// What was asked for of a plan beyond it. Null: it was not measured.
Record explanation_record(const Explanation& explanation, const MeasuredRun* measured = nullptr);
/// `map` of a plan document: "x" and "y" are keys of each of its cells.
Record map_record(const PlanMap& map);
std::vector<Record> explanation_records(std::span<const Explanation> explanations);

}  // namespace rooftile
