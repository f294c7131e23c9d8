// From a plan to the text of its kernel: CUDA C++ as a person would write it, around the device library in
// kernels/fuse.
#pragma once

#include <string>

#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// The kernel's name: "fuse_layernorm_add_gelu".
std::string fuse_kernel_name(const ExpressionGraph& graph);

/// The kernel's text. Its arguments are a struct of pointers (inputs, then outputs, in the graph's order;
/// then a DropoutKey for each dropout) and FuseSizes. The plan must be buildable.
std::string fuse_text(const FusePlan& plan);

/// What NVRTC is given.
Source fuse_source(const FusePlan& plan);
/// Its kernel waits for the one ahead before it reads anything, and lets the next one begin.
Source dependent_source(const FusePlan& plan);
/// Whether such a kernel can be launched while the one ahead ends: the architecture can, and its CTAs need not all be resident at once.
bool may_be_dependent(const FusePlan& plan);

/// Accumulators of a whole reduction, in the order of their slots in the workspace.
int whole_reductions(const Program& program);

}  // namespace rooftile
