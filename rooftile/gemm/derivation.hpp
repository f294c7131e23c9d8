// From a kept candidate to a plan: resources, prediction, and every step that led there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// What the derivation of one problem on one machine speaks about.
struct GemmContext {
    std::shared_ptr<const Machine> machine;
    GemmProblem problem;
    GemmHardware hw;
    std::string family;  ///< of the matrix instruction: "wgmma", "mma_sync", "generic"
    const GemmKernel* kernel;
    GemmRequest request;     ///< what the caller fixed
    std::vector<Kept> kept;  ///< best first
    PackedOperands packed{};  ///< operands that the kernel reads from copies
};

/// The plan of one of those kept, without its rank and without `buildable`. Its derivation shares the
/// context.
GemmPlan write_plan(const std::shared_ptr<const GemmContext>& context, std::size_t index);

}  // namespace rooftile
