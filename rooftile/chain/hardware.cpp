#include "rooftile/chain/hardware.hpp"

#include "rooftile/chain/problem.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const std::string input(chain_type_name(type));
    std::optional<Clock> clock = machine.number<Clock>("clock.boost");
    if (const auto sustained = matrix_clock(machine, input)) clock = sustained->clock;
    const MachineReader read(machine, clock, &unknown), optional(machine, clock);
    ChainHardware hw{};
    const auto fastest = fastest_instruction(machine, input, "fp32");
    hw.family = fastest ? fastest->family : "";
    hw.flops_per_cycle = read.flops_per_cycle(rate_key(fastest ? fastest->family : "mma_sync", input, "fp32"));
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    hw.top_hz = optional.number<Clock>(optional.first_known({"clock.tensor", "clock.boost"}));
    hw.exponentials_per_cycle = optional.number<OpsPerCycle>("rate.mufu", Per::sm);
    hw.issue_lanes = optional.count("sm.partitions") * warp_threads;
    hw.shared_bandwidth = optional.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = optional.bandwidth_per_sm("l2.port");
    hw.l2_share = read.bandwidth_per_sm("l2.bandwidth");
    hw.l2_bytes = read.number<Bytes>("l2.size") / known_or(optional.count("l2.partitions"), 1);
    hw.dram_bandwidth = read.bandwidth(read.first_known({"dram.sustained_read", "dram.bandwidth"}));
    hw.dram_copy_bandwidth = optional.bandwidth(optional.first_known({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}));
    hw.load_latency = known_or(optional.cycles("tma.latency_loaded_l2"),
                               read.cycles("l2.latency") + known_or(optional.cycles("tma.latency_extra"), 0));
    hw.step_cycles = optional.cycles("wgmma.step");
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.count("sm.max_registers_per_thread");
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.sms_per_gpc = optional.count("sm.per_gpc");
    hw.sm_skew = known_or(optional.number<Ratio>("sm.skew"), 0);
    hw.sustained_watts = optional.number<Watts>("power.sustained");
    hw.static_watts = optional.number<Watts>("power.static");
    hw.flop_joules = optional.number<JoulesPerFlop>("energy.flop." + input);
    hw.fill_joules = optional.number<JoulesPerByte>("energy.fill");
    hw.shared_read_joules = optional.number<JoulesPerByte>("energy.shared_read");
    hw.dram_joules = optional.number<JoulesPerByte>("energy.dram");
    hw.energy_exponent = optional.number<Ratio>("energy.exponent");
    return hw;
}

}  // namespace rooftile
