// From a kept candidate to a plan: resources, prediction, and every step that led there.
#pragma once

#include <string_view>

#include "rooftile/plan/gemm_search.hpp"

namespace rooftile {

/// What the derivation of one problem on one machine speaks about.
struct GemmContext {
    const Machine& machine;
    const GemmProblem& problem;
    const GemmHardware& hw;
    std::string_view family;  ///< of the matrix instruction: "wgmma", "mma_sync", "generic"
    GemmKernel kernel;
    const GemmRequest& request;         ///< what the caller fixed
    std::span<const Kept> rivals = {};  ///< all plans kept, best first
};

/// The plan without its rank and without `buildable`.
GemmPlan write_plan(const GemmContext& context, const Kept& kept);

}  // namespace rooftile
