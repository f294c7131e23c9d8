// Which numbers of a machine were settled by runs of our own kernels, and count: without them some outcome is another.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Whether a number's source says that it was chosen so that predictions come right, in calibration or out of it.
inline bool calibrated(const Fact& fact) {
    for (const char* word : {"fitted", "calibrated", "settled by"})
        if (fact.source.find(word) != std::string::npos) return true;
    return !fact.calibration.empty();
}

/// Of `problems` problems, whose outcomes are compared one by one. Numbers are left out together, and halved where that changes
/// something: most change nothing, and are done with at once.
inline std::set<std::string> calibrated_keys(const Machine& machine, std::size_t problems,
                                             const std::function<std::string(const Machine&, std::size_t)>& outcome) {
    std::vector<std::string> with, all;
    for (std::size_t i = 0; i < problems; ++i) with.push_back(outcome(machine, i));
    for (const auto& [key, fact] : machine.facts)
        if (calibrated(fact)) all.push_back(key);
    std::set<std::string> found;
    const std::function<void(std::span<const std::string>)> look = [&](std::span<const std::string> keys) {
        Machine without = machine;
        for (const std::string& key : keys) without.facts.erase(key);
        bool same = true;
        for (std::size_t i = 0; same && i < problems; ++i) same = outcome(without, i) == with[i];
        if (same) return;
        if (keys.size() == 1) found.insert(keys.front());
        else look(keys.first(keys.size() / 2)), look(keys.subspan(keys.size() / 2));
    };
    if (!all.empty()) look(all);
    return found;
}

}  // namespace rooftile
