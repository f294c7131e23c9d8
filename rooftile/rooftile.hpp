// Everything of the library, in the order in which data flows.
#pragma once

#include "rooftile/units.hpp"

#include "rooftile/error.hpp"

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"

#include "rooftile/expression/expression.hpp"
#include "rooftile/gemm/problem.hpp"
#include "rooftile/expression/tensor_value.hpp"

#include "rooftile/gemm/model.hpp"

#include "rooftile/fuse/plan.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/plan_cache.hpp"

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/live.hpp"  // asks the driver, so it stands with the kernel

#include "rooftile/fuse/device/measure.hpp"
#include "rooftile/gemm/device/measure.hpp"
