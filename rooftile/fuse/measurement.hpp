// What measuring fused kernels says of a row beyond what every operation has.
#pragma once

#include <optional>

#include "rooftile/fuse/plan.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// What `plan`'s instructions take at `clock_mhz`; empty unless they are what binds it.
std::optional<double> issue_roof_us(const FusePlan& plan, const Machine& machine, double clock_mhz);

}  // namespace rooftile
