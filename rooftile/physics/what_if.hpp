// What would have to be different for a plan behind the first to be the fastest.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// One number of the machine which, changed alone, makes a plan the fastest of those kept.
struct Counterfactual {
    std::string key;       ///< of the machine
    std::string unit;      ///< as the machine's file has it
    double value = 0;      ///< the machine's
    double threshold = 0;  ///< from where on it wins: below where it is less than `value`, else above
};

/// Numbers are changed by these factors at most.
inline constexpr double min_change = 0.25, max_change = 4;
/// Of the time: what a plan must be faster than plan 1 by, and may be slower than the others by.
inline constexpr double win_margin = 1e-4;

/// One of each plan; empty for plan 1, and for a plan that is the fastest as it is.
using WinsIf = std::vector<std::optional<std::vector<Counterfactual>>>;

/// For each of `plans`, which were made for that machine, the numbers of the machine that would let it win, the least
/// change first; of each number the nearest change either way, found in steps of 6 % and bisected. Every plan keeps its
/// configuration. None for a plan whose time is unknown, and where no number does it alone. There is one plan at least.
WinsIf counterfactuals(const Machine& machine, std::span<const Plan> plans);

}  // namespace rooftile
