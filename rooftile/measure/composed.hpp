// A plan of parts as one runnable: each part's kernels in turn in one stream, wired by the names of tensors. Where a part's launch is
// programmatic it begins during the end of the one before, and reads nothing until that has ended.
#pragma once

#include <memory>
#include <vector>

#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// The parts of a plan that has wires, compiled. Throws RequestError where a wire leads nowhere.
std::shared_ptr<const Runnable> composed(const Plan& plan, std::vector<CompiledKernel> parts);
/// Compiles them first. Throws as compile() does, too.
std::shared_ptr<const Runnable> compiled_parts(const Plan& plan, const CompileOptions& options);

}  // namespace rooftile
