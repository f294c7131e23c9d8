// What documents say of a compiled plan.
#pragma once

#include "rooftile/report/json.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// Plan, name and machine code of a kernel, as `rooftile/build/1` has them of every operation.
Json kernel_json(const CompiledKernel& kernel);

}  // namespace rooftile
