// Plans for a range of a field's values, as `rooftile/range/1` and as text.
#pragma once

#include <string>

#include "rooftile/core/plan_range.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// `plans` has a part of the range each, with the plan of its first value; `fields` of a part fixes its configuration for all others.
Json range_document(const DocumentContext& context, const PlanRange& range);
std::string range_text(const DocumentContext& context, const PlanRange& range, const Terminal& terminal);

}  // namespace rooftile
