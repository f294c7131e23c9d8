#include "rooftile/gemm/device/code.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile {

#define ROOFTILE_GEMM_KERNEL(NAME) std::unique_ptr<const GemmCode> NAME##_code(const GemmPlan&, Ablation);
#define ROOFTILE_GEMM_PLANNED(NAME)
#include "rooftile/gemm/kernels.def"
#undef ROOFTILE_GEMM_KERNEL

std::unique_ptr<const GemmCode> gemm_code(const GemmPlan& plan, Ablation ablated) {
    const auto cannot = [&](std::string_view why) {
        return RequestError(fmt::format("this plan cannot be built: {}", why));
    };
    if (!plan.why_not.empty()) throw cannot(plan.why_not);
#define ROOFTILE_GEMM_KERNEL(NAME) \
    if (plan.buildable && name_of(plan.config.kernel) == #NAME) return NAME##_code(plan, ablated);
#include "rooftile/gemm/kernels.def"
#undef ROOFTILE_GEMM_KERNEL
#undef ROOFTILE_GEMM_PLANNED
    throw cannot("there is no kernel for it yet");
}

}  // namespace rooftile
