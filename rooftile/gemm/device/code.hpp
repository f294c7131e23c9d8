// The device half of a GEMM kernel: its source, what a CTA takes, and the arguments of a launch. One object stands for
// the code of one plan. rooftile/gemm/kernels.def lists the kernels that have one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/types.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// What one CTA takes of an SM, and how many are launched side by side.
struct CtaUse {
    int threads = 0, shared_bytes = 0;
    int ctas_per_sm = 1;   ///< that the plan counts on
    int cluster_ctas = 1;
};

/// What a launch has whatever the shape.
Launch launch_of(const CtaUse& use);
/// CTAs of that kernel which `device`, the current one, holds at once. Throws Error(gpu_failed) where it holds none.
int resident_ctas(const Function& function, const CtaUse& use, int device);

/// Pointers of one launch.
struct GemmPointers {
    const void *a, *b;
    void* c;
    const unsigned* tiles;  ///< the tile schedule of an order that is read from a table, else null
    std::span<const void* const> operands{};  ///< of the epilogue
    std::span<void* const> more_results{};    ///< of it, behind the first
    const void *a_scales = nullptr, *b_scales = nullptr;  ///< of blocks
    void* workspace = nullptr;
    const int* offsets = nullptr;  ///< of groups
};

/// What a GEMM is launched on.
struct GemmOperands {
    GemmShape shape;
    GemmPointers pointers;
};

class GemmCode {
  public:
    virtual ~GemmCode() = default;

    virtual Source source() const = 0;
    /// Of the GPUs that it runs on: "sm_90".
    virtual std::string arch() const = 0;
    virtual CtaUse cta() const = 0;
    /// Whether a launch packs operands first, by the source's second name expression.
    virtual bool packs() const { return false; }
    /// Of copies of operands; 0 where the code packs none.
    virtual std::size_t workspace_bytes(const GemmShape&) const { return 0; }

    /// Throws RequestError naming the first size, leading dimension or pointer that the kernel cannot address.
    virtual void check(const GemmShape& shape, const void* a, const void* b, const void* c) const = 0;
    /// Tiles of C in the units that the tile schedule counts.
    virtual ClusterTiles tiles(const GemmShape& shape) const = 0;
    /// CTAs of a launch where `resident_ctas` fit at once. Throws RequestError where there are too many tiles.
    virtual int grid(const GemmShape& shape, int resident_ctas) const = 0;
    /// Launches the copies of what is packed into `workspace`, and says what the GEMM reads then. For code that packs.
    /// Throws RequestError where there is no workspace or it is not aligned.
    virtual GemmOperands pack(const Function& /*pack*/, Stream, const GemmOperands& given, void* /*workspace*/) const {
        return given;
    }
    /// Launches with its arguments; `launch` has all but them. Neither allocates nor synchronises.
    virtual void launch(const Function& function, const Launch& launch, const GemmShape& shape,
                        const GemmPointers& pointers) const = 0;
};

/// Throws RequestError where the plan's kernel has no code or the plan is not buildable.
std::unique_ptr<const GemmCode> gemm_code(const GemmPlan& plan, Ablation ablated);

}  // namespace rooftile
