// The plan that is built where none is named.
#pragma once

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// The first that can be built. Throws RequestError where none can: why, and of which plans where reasons differ.
const Plan& first_buildable(const PlanSet& plans);

}  // namespace rooftile
