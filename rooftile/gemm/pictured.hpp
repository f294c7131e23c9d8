// What pictures ask of a GEMM: the way through a tile by the time model, and the map of its tiles.
#pragma once

#include <memory>
#include <optional>

#include "rooftile/core/pictured.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/gemm/fields.hpp"

namespace rooftile {

std::optional<PipelineCycles> gemm_pipeline(const Machine& machine, const GemmPlan& plan);
/// tile_m across, tile_n down, with what the request fixes beside them.
PlanMap gemm_map(const std::shared_ptr<const Machine>& machine, const Plan& first, const GemmAsk& ask);

}  // namespace rooftile
