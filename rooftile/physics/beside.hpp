// Two independent plans at the same time on one GPU: some of the SMs each; L2, DRAM and power shared [M35, M38].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/demand.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// What one plan takes of each kind of unit, alone on the GPU.
struct UnitShares {
    double seconds = 0;  ///< predicted, alone
    double of_sms = 0;   ///< of the SMs' own units: tensor, issue, shared memory; at the pace of its prediction where they bind it
    double of_l2 = 0, of_dram = 0;  ///< at the full rate of each
    double dram_by_sms = 0;  ///< what its SMs can ask of DRAM, all of them; with fewer it takes that much longer
    double launch = 0;       ///< what no share of anything shortens
    double clock_hz = 0;     ///< at which it is predicted to run alone
    double joules = 0;       ///< of its work at `stated_hz`, at which the machine states its energies; NaN: unknown
    double stated_hz = 0;
};

struct SideBySide {
    UnitShares parts[2];
    double in_turn = 0;        ///< seconds, one after the other
    double together = 0;       ///< seconds, both begin at once; the best split of the SMs
    int sms[2] = {0, 0};       ///< of that split
    std::string bound;         ///< what that time is the time of: "first", "second", "dram", "l2", "power", "the longer one"
    double clock_hz = 0;       ///< together: what power leaves of the highest one
    double ceiling = 1;        ///< (t_first + t_second) / the longest sum of one kind of unit: no split gains more [M38]
    double gain() const { return in_turn / together; }
    /// What is composed here knows nothing of waves that do not fit fewer SMs, nor of how two kernels meet in L2 and DRAM: together they took
    /// up to 1.25 times what the longer one took on its SMs with the others idle (docs/facts.md 276). A gain below that is none.
    static constexpr double least_gain = 1.25;
    std::string against;  ///< one line of why it is not advised; empty: it is
    bool pays() const { return against.empty(); }
};

/// Empty where a time or a rate is unknown; `why` then says which.
std::optional<SideBySide> side_by_side(const Machine& machine, const Plan& first, const Plan& second, std::string& why);

}  // namespace rooftile
