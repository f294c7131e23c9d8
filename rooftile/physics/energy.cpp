#include "rooftile/physics/energy.hpp"

#include <algorithm>
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
    // What a demand has none of takes no energy, known or not.
    const auto charged = [&]<class Q>(const std::string& key, Q unit, double amount) {
        return amount == 0 ? 0 : number(key, unit) * amount;
    };
    double matrix = 0, flops = 0;
    for (const MatrixWork& work : demand.matrix) {
        matrix += number("energy.flop." + work.input, JoulesPerFlop{}) * work.flops;
        flops += work.flops;
    }
    const double instructions = charged("energy.instruction", Joules{}, demand.issue_slots);
    const double fill = charged("energy.fill", JoulesPerByte{}, demand.filled_bytes + demand.loaded_bytes);
    const double dram = charged("energy.dram", JoulesPerByte{}, demand.dram_bytes.value_or(unknown_number));
    const double idle = number("power.static", Watts{}) * run.seconds;
    const double exponent = number("energy.exponent", Ratio{});
    const auto read_joules = machine.number<JoulesPerByte>("energy.shared_read");  // unknown: not charged
    if (read_joules && demand.shared_read_bytes > 0) e.inputs.push_back(facts.fact("energy.shared_read"));
    const double read = read_joules ? read_joules->value * demand.shared_read_bytes : 0;

    // Energies are stated at the clock of sustained matrix work; those of bytes and instructions at bf16's.
    const std::string input = demand.matrix.empty() ? "bf16" : demand.matrix.front().input;
    const auto stated = matrix_clock(machine, input);
    const double ratio = run.clock_hz / (stated ? stated->clock.value : unknown_number);
    double scale = ratio == 1 ? 1 : std::pow(ratio, exponent);
    const double work = matrix + instructions + fill + dram + read;
    // Without products the predicted clock is the highest. Where that takes more than the limit, the clock falls; the time is memory's.
    if (demand.matrix.empty())
        if (const auto limit = machine.number<Watts>("power.sustained"); limit && limit->value * run.seconds > idle)
            scale = std::min(scale, (limit->value * run.seconds - idle) / work);
    const double total = work * scale + idle;
    e.matrix = known(matrix * scale);
    e.instructions = known(instructions * scale);
    e.fill = known((fill + read) * scale);
    e.dram = known(dram * scale);
    e.idle = known(idle);
    e.total = known(total);
    e.watts = known(total / run.seconds);
    if (flops > 0) e.joules_per_tflop = known(total / (flops / 1e12));
    return e;
}

}  // namespace rooftile
