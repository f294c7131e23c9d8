// What hardware counters said of a profile's kernels, from a second run of the program under Nsight Compute, whose table of values is read:
// kernel replay saves and restores a program's memory around each launch, which takes a tool that sees all of its allocations.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/profile/profile.hpp"

namespace rooftile {

/// Names of what is counted, as Nsight Compute has them.
std::vector<std::string> counted_metrics();

/// Which launches to count: of each of these kernels, as they are mangled, those of these numbers.
struct LaunchesToCount {
    std::vector<std::string> kernels;
    /// Numbers of launches among those of their name, from 0 and from 1: whichever is counted, it is found. The other is one launch more.
    std::vector<std::size_t> places;
    std::vector<std::string> skipped;  ///< names that no pattern can hold
};
/// Of the `top` groups of a profile the last launch each.
LaunchesToCount launches_to_count(const std::vector<Recorded>& recordings, const Profile& profile, std::size_t top);
/// The same as a filter of launches: "::regex:^(a|b)$:3|7".
std::string kernel_filter(const LaunchesToCount& launches);

struct CountedLaunch {
    std::string kernel;
    std::array<std::int32_t, 3> grid{}, block{};
    std::map<std::string, double> values;  ///< by metric, in base units
};
/// A table in the form of `ncu --csv`, with a row a launch or a row a value; lines that begin with "==" are messages. Throws
/// Error(counters_denied) where they say that counters are not permitted, Error(gpu_failed) where they say another fault and there is no
/// table.
std::vector<CountedLaunch> read_counted(std::string_view text);

/// Puts into each group what was counted of launches like it.
void add_counters(Profile& profile, const std::vector<CountedLaunch>& launches);

}  // namespace rooftile
