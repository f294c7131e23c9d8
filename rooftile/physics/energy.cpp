#include "rooftile/physics/energy.hpp"

#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {

Energy energy_of(const Demand& demand, const Machine& machine, const PredictedRun& run) {
    Energy e;
    const Derivation facts(machine);
    const auto number = [&]<class Q>(const std::string& key, Q) {
        e.inputs.push_back(facts.fact(key));
        if (!e.inputs.back().value) e.unknown.push_back(key);
        const auto found = machine.number<Q>(key);
        return found ? found->value : unknown_number;
    };
    double matrix = 0, flops = 0;
    for (const MatrixWork& work : demand.matrix) {
        matrix += number("energy.flop." + work.input, JoulesPerFlop{}) * work.flops;
        flops += work.flops;
    }
    const double fill = number("energy.fill", JoulesPerByte{}) * demand.filled_bytes;
    const double dram = number("energy.dram", JoulesPerByte{}) * demand.dram_bytes.value_or(unknown_number);
    const double idle = number("power.static", Watts{}) * run.seconds;
    const double exponent = number("energy.exponent", Ratio{});
    const auto read_joules = machine.number<JoulesPerByte>("energy.shared_read");  // unknown: not charged
    if (read_joules) e.inputs.push_back(facts.fact("energy.shared_read"));
    const double read = read_joules ? read_joules->value * demand.shared_read_bytes : 0;

    // Energies are stated at the clock of sustained matrix work; what has none is taken at its own.
    const auto stated = demand.matrix.empty() ? std::nullopt : matrix_clock(machine, demand.matrix.front().input);
    const double ratio = demand.matrix.empty() ? 1 : run.clock_hz / (stated ? stated->clock.value : unknown_number);
    const double scale = ratio == 1 ? 1 : std::pow(ratio, exponent);
    const double total = (matrix + fill + dram + read) * scale + idle;
    e.matrix = known(matrix * scale);
    e.fill = known((fill + read) * scale);
    e.dram = known(dram * scale);
    e.idle = known(idle);
    e.total = known(total);
    e.watts = known(total / run.seconds);
    if (flops > 0) e.joules_per_tflop = known(total / (flops / 1e12));
    return e;
}

}  // namespace rooftile
