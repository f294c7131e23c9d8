// What the C interface's handles hold.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/rooftile.h"

struct rooftile_plans {
    std::shared_ptr<const rooftile::Machine> machine;
    rooftile::DocumentContext context;
    rooftile::PlanSet set;
    std::vector<rooftile::TensorInfo> tensors;
    std::vector<std::vector<std::int64_t>> extents;  ///< of each
    std::vector<rooftile_tensor> views;              ///< of both
};

namespace rooftile::c {

/// Plan `rank`, from 1. Throws RequestError where there is none.
const Plan& plan_of(const rooftile_plans& plans, int rank);

}  // namespace rooftile::c
