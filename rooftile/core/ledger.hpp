// A ledger's entry: what every member of one problem's declared space took on a GPU (core/space.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/problem.hpp"
#include "rooftile/core/value.hpp"

namespace rooftile {

struct LedgerMember {
    Record config;
    std::optional<double> predicted_us;  ///< when it was recorded
    std::optional<double> first_us;      ///< timed once, in short blocks; empty: it could not be built or run
    std::optional<bool> right;           ///< its result; empty: not compared
    std::string failed;                  ///< why it has no time, or what is wrong
};

/// A member timed again beside the fastest, by paired ratios to it. The settled time is from blocks long enough for the
/// power limit's control; empty: not among the few that had them.
struct LedgerAgain {
    std::size_t member = 0;
    double us = 0;
    std::optional<double> settled_us{};
};

struct LedgerPick {
    std::string name;
    std::size_t member = 0;
};

struct LedgerEntry {
    Problem problem;
    std::vector<LedgerMember> members;
    std::size_t kept = 0;  ///< the first so many are what the planner kept, best first
    std::vector<LedgerPick> picks;
    std::vector<LedgerAgain> again;
    std::optional<LedgerAgain>
        duplicate{};  ///< one of `again` timed a second time in the same rounds as if it were another
    std::optional<double> duplicate_first_us{};
    std::vector<std::string> notes;
    double seconds = 0;  ///< on the GPU
};

}  // namespace rooftile
