// What the C interface's handles hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/c/nothing.hpp"
#include "rooftile/c/tensor_views.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/rooftile.h"

struct rooftile_plans {
    std::shared_ptr<const rooftile::Machine> machine;
    rooftile::DocumentContext context;
    rooftile::PlanSet set;
    rooftile::Own request;  ///< what they were searched by
    std::unique_ptr<const rooftile::c::TensorViews> tensors;
    std::optional<rooftile::c::Nothing> nothing;  ///< where the plans are of what stands in
};

namespace rooftile::c {

/// Plan `rank`, from 1. Throws RequestError where there is none.
const Plan& plan_of(const rooftile_plans& plans, int rank);

}  // namespace rooftile::c
