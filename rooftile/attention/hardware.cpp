#include "rooftile/attention/hardware.hpp"

#include "rooftile/attention/problem.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    const std::string_view input = attention_type_name(type);
    const std::optional<Clock> clock = matrix_or_boost_clock(machine, input);
    const MachineReader read(machine, clock);
    AttentionHardware hw{};
    static_cast<MatrixHardware&>(hw) = matrix_hardware(
        machine,
        {.input = input, .clock = clock, .sustained = clock,
         .needs = {"rate", "sm.count", "clock.boost", "l2.bandwidth", "l2.size", "dram.bandwidth", "l2.latency", "launch.gap_stream",
                   "sm.registers", "sm.max_registers_per_thread", "shared.per_cta", "rate.mufu", "sm.partitions", "shared.bandwidth",
                   "l2.port", "sm.max_threads_per_cta"}},
        unknown);
    hw.softmax_stretch = known_or(read.number<Ratio>("softmax.stretch"), 1);
    hw.softmax_latency = known_or(read.cycles("softmax.latency"), 0);
    hw.turn_cycles = read.cycles("softmax.turn");
    hw.softmax_flops = known_or(read.number<Ratio>("softmax.flops"), 0);
    return hw;
}

}  // namespace rooftile
