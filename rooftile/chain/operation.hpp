// Chains of two products as an operation.
#pragma once

#include "rooftile/core/operation.hpp"

namespace rooftile {

const Operation& chain_operation();

}  // namespace rooftile
