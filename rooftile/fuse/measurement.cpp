#include "rooftile/fuse/measurement.hpp"

#include "rooftile/fuse/hardware.hpp"

namespace rooftile {

std::optional<double> issue_roof_us(const FusePlan& plan, const Machine& machine, double clock_mhz) {
    if (plan.prediction.bound != Bound::issue) return std::nullopt;
    std::vector<std::string> unknown;
    const double planned_mhz = fuse_hardware(machine, unknown).clock_hz / 1e6;
    for (const Step& step : plan.derivation)
        if (step.quantity == "issue_time" && step.value && clock_mhz > 0 && planned_mhz > 0)
            return *step.value * planned_mhz / clock_mhz;
    return std::nullopt;
}

}  // namespace rooftile
