#include "rooftile/machine/matrix_hardware.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input) {
    if (const auto sustained = matrix_clock(machine, input)) return sustained->clock;
    return machine.number<Clock>("clock.boost");
}

void check_power(double sustained_watts, double static_watts) {
    if (sustained_watts <= static_watts)
        throw RequestError(fmt::format(
            "power.sustained = {:g} W must exceed power.static = {:g} W: nothing is left for work",
            sustained_watts, static_watts));
}

std::string missing_matrix_type(const Machine& machine, std::string_view input) {
    if (!machine.lacks(input)) return {};
    return fmt::format("{} has no {} matrix instruction; take {}", machine.id, input, input == "fp16" ? "bf16" : "fp16");
}

MatrixHardware matrix_hardware(const Machine& machine, std::string_view input, std::vector<std::string>& unknown) {
    const std::optional<Clock> clock = matrix_or_boost_clock(machine, input);
    const MachineReader read(machine, clock, &unknown), optional(machine, clock);
    MatrixHardware hw{};
    if (machine.has("wgmma")) hw.family = "wgmma";
    else if (const auto fastest = fastest_instruction(machine, input, "fp32")) hw.family = fastest->family;
    hw.flops_per_cycle =
        read.flops_per_cycle(rate_key(hw.family.empty() ? "mma_sync" : hw.family, input, "fp32"));
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    hw.top_hz = optional.number<Clock>(optional.first_known({"clock.tensor", "clock.boost"}));
    hw.l2_share = read.bandwidth_per_sm("l2.bandwidth");
    hw.l2_bytes = read.number<Bytes>("l2.size") / known_or(optional.count("l2.partitions"), 1);
    hw.dram_bandwidth = read.bandwidth(read.first_known({"dram.sustained_read", "dram.bandwidth"}));
    hw.load_latency = known_or(optional.cycles("tma.latency_loaded_l2"),
                               read.cycles("l2.latency") + known_or(optional.cycles("tma.latency_extra"), 0));
    hw.load_in_seconds = optional.in_seconds("tma.latency_loaded_l2");
    hw.step_cycles = optional.cycles("wgmma.step");
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.registers_per_thread();
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.sustained_watts = optional.number<Watts>("power.sustained");
    hw.static_watts = optional.number<Watts>("power.static");
    check_power(hw.sustained_watts, hw.static_watts);
    hw.flop_joules = optional.number<JoulesPerFlop>("energy.flop." + std::string(input));
    hw.fill_joules = optional.number<JoulesPerByte>("energy.fill");
    hw.shared_read_joules = optional.number<JoulesPerByte>("energy.shared_read");
    hw.dram_joules = optional.number<JoulesPerByte>("energy.dram");
    hw.energy_exponent = optional.number<Ratio>("energy.exponent");
    return hw;
}

}  // namespace rooftile
