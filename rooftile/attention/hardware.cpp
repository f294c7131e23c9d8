#include "rooftile/attention/hardware.hpp"

#include "rooftile/attention/problem.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const std::string_view input = attention_type_name(type);
    const std::optional<Clock> clock = matrix_or_boost_clock(machine, input);
    const MachineReader read(machine, clock, &unknown), optional(machine, clock);
    AttentionHardware hw{};
    static_cast<MatrixHardware&>(hw) = matrix_hardware(machine, input, unknown);
    hw.exponentials_per_cycle = read.number<OpsPerCycle>("rate.mufu", Per::sm);
    constexpr double flops_of_fma = 2;
    hw.arithmetic_per_cycle = optional.flops_per_cycle("rate.fma.fp32.fp32") / flops_of_fma;
    hw.comparisons_per_cycle = optional.number<OpsPerCycle>("rate.alu", Per::sm);
    hw.issue_lanes = read.count("sm.partitions") * warp_threads;
    hw.shared_bandwidth = read.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = read.bandwidth_per_sm("l2.port");
    hw.threads_per_cta = read.threads_per_cta();
    hw.moves_registers = machine.has("setmaxnreg");
    hw.softmax_stretch = known_or(optional.number<Ratio>("softmax.stretch"), 1);
    hw.softmax_latency = known_or(optional.cycles("softmax.latency"), 0);
    hw.turn_cycles = optional.cycles("softmax.turn");
    hw.softmax_flops = known_or(optional.number<Ratio>("softmax.flops"), 0);
    return hw;
}

}  // namespace rooftile
