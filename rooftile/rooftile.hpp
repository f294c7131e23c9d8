// What every program needs, whichever operations it plans; an operation's typed functions are in its own header
// (rooftile/OPERATION/OPERATION.hpp).
#pragma once

#include "rooftile/units.hpp"

#include "rooftile/error.hpp"

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"

#include "rooftile/core/operation.hpp"

#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tensor_value.hpp"

#include "rooftile/machine/live.hpp"

#include "rooftile/measure/source_module.hpp"
