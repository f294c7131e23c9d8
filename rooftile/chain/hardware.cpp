#include "rooftile/chain/hardware.hpp"

#include "rooftile/chain/problem.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown) {
    const std::string_view input = chain_type_name(type);
    const std::optional<Clock> clock = matrix_or_boost_clock(machine, input);
    ChainHardware hw{};
    static_cast<MatrixHardware&>(hw) = matrix_hardware(
        machine,
        {.input = input, .clock = clock, .sustained = clock,
         .needs = {"rate", "sm.count", "clock.boost", "l2.bandwidth", "l2.size", "dram.bandwidth", "l2.latency", "launch.gap_stream",
                   "sm.registers", "sm.max_registers_per_thread", "shared.per_cta"}},
        unknown);
    hw.product_stretch = known_or(MachineReader(machine, clock).number<Ratio>("wgmma.stretch"), 1);
    return hw;
}

}  // namespace rooftile
