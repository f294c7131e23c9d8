#include "rooftile/tiled/hardware.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input) {
    if (const auto sustained = matrix_clock(machine, input)) return sustained->clock;
    return machine.number<Clock>("clock.boost");
}

MatrixPower matrix_power(const MachineReader& read, std::string_view input, std::optional<Clock> sustained) {
    MatrixPower power;
    power.sustained_hz = sustained ? sustained->value : unknown_number;
    power.top_hz = read.number<Clock>(read.first_known({"clock.tensor", "clock.boost"}));
    power.sustained_watts = read.number<Watts>("power.sustained");
    power.static_watts = read.number<Watts>("power.static");
    if (power.sustained_watts <= power.static_watts)
        throw RequestError(fmt::format("power.sustained = {:g} W must exceed power.static = {:g} W: nothing is left for work",
                                       power.sustained_watts, power.static_watts));
    power.flop_joules = read.number<JoulesPerFlop>("energy.flop." + std::string(input));
    power.fill_joules = read.number<JoulesPerByte>("energy.fill");
    power.shared_read_joules = max_known(0, read.number<JoulesPerByte>("energy.shared_read"));
    power.dram_joules = read.number<JoulesPerByte>("energy.dram");
    power.energy_exponent = read.number<Ratio>("energy.exponent");
    return power;
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
    static_cast<MatrixPower&>(hw) = matrix_power(optional, input, clock);
    return hw;
}

}  // namespace rooftile
