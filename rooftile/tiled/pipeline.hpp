// A tile's steps on units that work side by side, fed by a ring of stages: what a step takes, what shows of its loads, and what DRAM
// adds. Where kernels' models still differ, the difference is an argument [M14, M19].
#pragma once

#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/bound.hpp"

namespace rooftile {

/// What takes the longest of several units that work side by side.
struct Pace {
    double time = 0;
    Bound bound = Bound::tensor;
    /// Beside those so far; unknown: nothing.
    void beside(double unit, Bound by) {
        if (unit > time || std::isnan(time)) time = unit, bound = by;
    }
};

/// How loads show that take longer than the ring's other steps.
enum class RingRule {
    lead,  ///< a load is issued `stages` - 1 steps ahead: a step takes no less than its share of that time
    turn,  ///< a stage is loaded, then used: the stages' steps and one load's wait take as long as the load and a step
};
/// A step of `step` cycles whose load takes `load` from issue to use, of a CTA that has `share` of its SM: while it waits the others work.
inline double fed_step(RingRule rule, double step, double load, double stages, double share = 1) {
    if (rule == RingRule::lead) return max_known(step, load * (1 / (stages - 1)) * share);
    const double shown = load * share - (stages - 1) * step;
    return shown > 0 ? step + shown / stages : step;
}

/// A load's latency where what delivers is busy for that share of the time: as many loads are in front of it. Unknown: as if always.
inline double latency_under_load(double idle, double loaded, double busy) {
    return loaded - max_known(0, loaded - idle) * (1 - min_known(1, busy));
}

/// What the ring takes to be full from empty.
inline double fill_cycles(double latency, double transfer) { return latency + max_known(transfer, 0); }

/// What takes `longest` by itself and something else `other`, no longer, at once: t^n is the sum of both t^n. The nearer the two are, the more
/// often one waits for the other. An unknown exponent n: all of it overlaps.
inline double overlapped(double longest, double other, double n) {
    // By their ratio: a power of seconds or of cycles alone may be beyond any number.
    return std::isnan(n) || other <= 0 ? longest : longest * std::pow(1 + std::pow(other / longest, n), 1 / n);
}

/// Seconds of a launch whose SMs take `on_chip` beside DRAM and L2. The launch is the same for all plans: unknown, it is left out.
inline Pace launch_pace(Pace on_chip, double dram, double l2, double fill, double launch) {
    if (std::isnan(on_chip.time) || std::isnan(dram)) return {unknown_number, on_chip.bound};
    on_chip.beside(dram, Bound::dram);
    on_chip.beside(l2, Bound::l2);
    if (launch > on_chip.time) on_chip.bound = Bound::launch;
    on_chip.time += fill + known_or(launch, 0);
    return on_chip;
}

}  // namespace rooftile
