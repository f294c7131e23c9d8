// A plan made runnable: compiled for its machine, loaded into a context, launched on the caller's stream.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/sm90_attention_config.hpp"
#include "rooftile/attention/plan.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// The kernel's template parameter, its registers among it.
Sm90AttentionConfig kernel_config(const AttentionPlan& plan);
/// What compile() hands to the compiler. Throws RequestError where the plan is not buildable.
Source attention_source(const AttentionPlan& plan);
/// All but what a launch adds: pointers and the counter.
AttentionArguments attention_arguments(const AttentionProblem& problem, std::int64_t section_heads);

/// Compiles exactly the planned kernel, or takes it from the cache. Needs NVRTC, no GPU. Throws as DeviceOperation::compile().
std::shared_ptr<const Runnable> compiled_attention(const AttentionPlan& plan, const CompileOptions& options = {});

/// Names the code that compiled_attention() makes: the same for plans that share it.
std::string code_key(const AttentionPlan& plan);

}  // namespace rooftile
