// Everything of the library, in the order in which data flows.
#pragma once

#include "rooftile/units.hpp"

#include "rooftile/error.hpp"

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"

#include "rooftile/problem/expression.hpp"
#include "rooftile/problem/gemm.hpp"
#include "rooftile/problem/tensor_value.hpp"

#include "rooftile/model/gemm_model.hpp"

#include "rooftile/plan/fuse_plan.hpp"
#include "rooftile/plan/plan.hpp"
#include "rooftile/plan/plan_cache.hpp"

#include "rooftile/kernel/fuse_kernel.hpp"
#include "rooftile/kernel/kernel.hpp"
#include "rooftile/machine/live.hpp"  // asks the driver, so it stands with the kernel

#include "rooftile/measure/fuse.hpp"
#include "rooftile/measure/measure.hpp"
