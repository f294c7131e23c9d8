#include "rooftile/gemm/hardware.hpp"

#include "rooftile/machine/query.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown, std::optional<Clock> clock) {
    MatrixUse use{.input = rate_name_of(type), .clock = clock, .sustained = clock, .family = std::string(family)};
    if (!clock) {
        use.clock = fitted_clock(machine, use.input);
        use.sustained = use.clock;
        if (const auto named = matrix_clock(machine, use.input)) use.sustained = named->clock;
    }
    use.needs = {"sm.count", "clock.boost", "rate"};
    if (family == "fma") use.needs.push_back("sm.partitions");
    for (const char* key : {"shared.bandwidth", "l2.port", "l2.bandwidth", "dram.bandwidth", "l2.size", "l2.partitions", "shared.per_cta",
                            "shared.per_sm", "shared.reserved_per_cta", "shared.allocation_unit", "sm.registers",
                            "sm.max_registers_per_thread", "sm.register_allocation_unit", "dram.latency", "l2.latency"})
        use.needs.push_back(key);
    if (machine.has("tma") && family != "mma_sync") use.needs.push_back("tma.latency_extra");
    for (const char* key : {"launch.gap_stream", "sm.max_threads_per_cta", "sm.max_warps", "sm.max_ctas"}) use.needs.push_back(key);
    if (family == "wgmma" && machine.has("cluster"))
        for (const char* key : {"sm.per_gpc", "dsmem.bandwidth", "dsmem.latency", "barrier.cluster"}) use.needs.push_back(key);
    GemmHardware hw;
    static_cast<MatrixHardware&>(hw) = matrix_hardware(machine, std::move(use), unknown);
    return hw;
}

}  // namespace rooftile
