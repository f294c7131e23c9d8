#include "rooftile/physics/roofline.hpp"

#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {

std::optional<Roofline> roofline_of(const Demand& demand, const Machine& machine, const PredictedRun& run) {
    if (demand.matrix.empty() || std::isnan(run.clock_hz)) return std::nullopt;
    const MatrixWork& work = demand.matrix.front();
    Roofline out;
    for (const MatrixWork& each : demand.matrix) out.flop += each.flops;
    const Derivation facts(machine);
    const std::string top_key = machine.find("clock.tensor") ? "clock.tensor" : "clock.boost";
    const auto top = machine.number<Clock>(top_key);
    const std::string rate = rate_key(work.family, work.input, work.accumulate);
    const auto peak = [&](const char* name, std::optional<Clock> clock, std::string source) {
        if (const auto flops = clock ? peak_flops(machine, work.family, work.input, work.accumulate, clock) : std::nullopt)
            out.peaks.push_back({name, flops->value, clock->value, std::move(source)});
    };
    peak("datasheet", top, rate + " at " + top_key);
    // A peak that is stated as such has no clock: the rate says what another clock leaves of it.
    if (const auto per_sm = flops_per_cycle_per_sm(machine, rate, top))
        if (const auto count = machine.count("sm.count"))
            out.peaks.push_back({"predicted_clock", per_sm->value * *count * run.clock_hz, run.clock_hz,
                                 rate + " at the clock that the plan is predicted to have"});
    if (out.peaks.empty()) return std::nullopt;
    const Clock clock{run.clock_hz};
    const auto level = [&](const char* name, std::optional<double> bytes, const std::string& key) {
        const auto at = bandwidth(machine, key, clock);
        if (bytes && at && *bytes > 0) out.levels.push_back({name, *bytes, at->value, facts.fact(key)});
    };
    level("dram", demand.dram_bytes, machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth");
    level("l2", demand.l2_bytes, "l2.bandwidth");
    level("shared", demand.shared_bytes, "shared.bandwidth");
    return out;
}

}  // namespace rooftile
