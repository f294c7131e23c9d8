#include "rooftile/attention/hardware.hpp"

#include "rooftile/attention/problem.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const std::string input(attention_type_name(type));
    std::optional<Clock> clock = machine.number<Clock>("clock.boost");
    if (const auto sustained = matrix_clock(machine, input)) clock = sustained->clock;
    const MachineReader read(machine, clock, &unknown), optional(machine, clock);
    AttentionHardware hw{};
    const auto fastest = fastest_instruction(machine, input, "fp32");
    hw.family = fastest ? fastest->family : "";
    hw.flops_per_cycle = read.flops_per_cycle(rate_key(fastest ? fastest->family : "mma_sync", input, "fp32"));
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    hw.top_hz = optional.number<Clock>(optional.first_known({"clock.tensor", "clock.boost"}));
    hw.exponentials_per_cycle = read.number<OpsPerCycle>("rate.mufu", Per::sm);
    constexpr double flops_of_fma = 2;
    hw.arithmetic_per_cycle = optional.flops_per_cycle("rate.fma.fp32.fp32") / flops_of_fma;
    hw.comparisons_per_cycle = optional.number<OpsPerCycle>("rate.alu", Per::sm);
    hw.issue_lanes = read.count("sm.partitions") * warp_threads;
    hw.shared_bandwidth = read.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = read.bandwidth_per_sm("l2.port");
    hw.l2_share = read.bandwidth_per_sm("l2.bandwidth");
    hw.l2_bytes = read.number<Bytes>("l2.size") / known_or(optional.count("l2.partitions"), 1);
    hw.dram_bandwidth = read.bandwidth(read.first_known({"dram.sustained_read", "dram.bandwidth"}));
    hw.load_latency = known_or(optional.cycles("tma.latency_loaded_l2"),
                               read.cycles("l2.latency") + known_or(optional.cycles("tma.latency_extra"), 0));
    hw.step_cycles = optional.cycles("wgmma.step");
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.count("sm.max_registers_per_thread");
    hw.threads_per_cta = read.count("sm.max_threads_per_cta");
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.moves_registers = machine.has("setmaxnreg");
    hw.softmax_stretch = known_or(optional.number<Ratio>("softmax.stretch"), 1);
    hw.softmax_latency = known_or(optional.cycles("softmax.latency"), 0);
    hw.turn_cycles = optional.cycles("softmax.turn");
    hw.sustained_watts = optional.number<Watts>("power.sustained");
    hw.static_watts = optional.number<Watts>("power.static");
    hw.flop_joules = optional.number<JoulesPerFlop>("energy.flop." + input);
    hw.fill_joules = optional.number<JoulesPerByte>("energy.fill");
    hw.shared_read_joules = optional.number<JoulesPerByte>("energy.shared_read");
    hw.softmax_flops = known_or(optional.number<Ratio>("softmax.flops"), 0);
    hw.dram_joules = optional.number<JoulesPerByte>("energy.dram");
    hw.energy_exponent = optional.number<Ratio>("energy.exponent");
    return hw;
}

}  // namespace rooftile
