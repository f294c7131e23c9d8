// What pictures of plans are drawn from: one document, whoever asks for them.
#pragma once

#include <memory>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// `map` of a plan document: the times of its tiles, and the walls. Null where the operation has none. Takes many searches, a second or so.
Json map_json(const std::shared_ptr<const Machine>& machine, const Plan& plan, const Own& request);

/// `rooftile/plan/1` with all that explains the plans, and with `map` where that is not null.
Json pictured_document(const DocumentContext& context, const Machine& machine, const PlanSet& plans, const Json& map, bool energy = false);

}  // namespace rooftile
