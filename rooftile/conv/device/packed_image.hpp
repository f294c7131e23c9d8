// Convolutions of images whose channels are outermost: packed in the workspace, launched and verified.
#pragma once

#include <memory>

#include "rooftile/conv/problem.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

Source channels_last_source(std::string_view arch);
/// The transposition that verification does.
Source transpose_source(std::string_view arch);
/// The kernel that packs x, then `packed`, which convolves it.
std::shared_ptr<const Runnable> packed_first(const Plan& plan, std::shared_ptr<const Runnable> packed, const CompileOptions& options);
/// What `packed_first` launches last; `runnable` itself where it packs nothing.
const Runnable& behind_packing(const Runnable& runnable);

/// `of_packed` judges images with their channels innermost and outlives it; these have them outermost. In the current context.
std::unique_ptr<Reference> channels_first_reference(const ConvProblem& problem, const Reference& of_packed);

}  // namespace rooftile
