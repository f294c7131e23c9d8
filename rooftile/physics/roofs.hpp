// The least time that a machine's rates leave for a demand: no schedule is faster, whatever the operation [M1, M33].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/bound.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// What a plan has of the machine while it runs.
struct Conditions {
    double sm_share = 1;                   ///< of the SMs; the rest is another plan's
    std::optional<double> clock_hz{};      ///< of the SMs; empty: the highest
    std::vector<std::string> held_in_l2{}; ///< tensors whose bytes are in L2 when it begins
    bool sustained = false;                ///< DRAM as somebody measured it, where somebody did
};

/// One unit's part.
struct UnitTime {
    Bound bound = Bound::dram;
    double seconds = 0;
    std::string key;  ///< of the machine, which its rate stands under
};

struct RoofTime {
    std::vector<UnitTime> units;        ///< those whose rate is known, the longest first
    std::vector<std::string> unknown;   ///< keys of the machine that were missed
    std::optional<double> seconds() const {
        return units.empty() ? std::nullopt : std::optional(units.front().seconds);
    }
    std::optional<Bound> bound() const { return units.empty() ? std::nullopt : std::optional(units.front().bound); }
};

/// Every unit at its full rate, all of them side by side; a tile has one SM. DRAM's rate is the datasheet's, unless
/// asked otherwise; what is compulsory counts, not what the plan reads again. One launch begins `launch.gap_stream` after the one before it.
RoofTime roof_time(const Demand& demand, const Machine& machine, const Conditions& conditions = {});

}  // namespace rooftile
