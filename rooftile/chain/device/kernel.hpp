// A chain's plan made runnable: two products' kernels one after the other with H in the workspace, or one kernel without H.
#pragma once

#include <memory>
#include <string>

#include "kernels/chain/chain_arguments.hpp"
#include "rooftile/chain/model.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// Of form on_chip: the kernel's template parameter, its registers among it.
Sm90ChainConfig kernel_config(const ChainPlan& plan);
/// Of form on_chip what compile() hands to the compiler; of two kernels the first one's. Throws RequestError where the plan is not
/// buildable.
Source chain_source(const Plan& plan);
/// Compiles exactly the planned kernels, or takes them from the cache. Throws as DeviceOperation::compile().
std::shared_ptr<const Runnable> compiled_chain(const Plan& plan, const CompileOptions& options = {});
/// Names the code that compiled_chain() makes.
std::string chain_code_key(const Plan& plan);

}  // namespace rooftile
