// What --explain, --energy and --blame add to the documents. For rooftile/report's own sources.
#pragma once

#include <vector>

#include "rooftile/report/json.hpp"

namespace rooftile {

Json inputs_json(const std::vector<Input>& inputs);

/// Adds to a plan, and to a measured row, what was asked for beyond it. `valid`: the row is a result.
void add_explanation(Json& plan, const Explanation& explanation);
void add_explanation(Json& row, const Measurement& measurement, bool valid);

}  // namespace rooftile
