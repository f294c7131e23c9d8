// What measured rows of every operation have in common, in JSON.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/measure/confirmation.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// {samples ratio ratio_low ratio_high first_ratio}; null where there was none.
Json confirmation_json(const std::optional<Confirmation>& confirmation);

/// Empty where nothing was counted. Counts, bytes and cycles are means of launches, whole at the edge.
Json counters_json(const std::optional<CounterValues>& counters);
Json timings_json(const std::vector<Timing>& timings);
Json layers_json(const std::vector<SuiteLayer>& layers);

}  // namespace rooftile
