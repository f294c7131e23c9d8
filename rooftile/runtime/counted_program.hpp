// A program run once more under Nsight Compute, which counts some of its launches.
#pragma once

#include <string>
#include <vector>

namespace rooftile {

/// The path of `ncu`. Throws Error(counters_denied), one line, where there is none.
std::string found_ncu();

/// Runs the program under `ncu`, counts the launches of that filter, and gives what it wrote: a table, messages, or nothing.
std::string run_counted(const std::string& ncu, const std::vector<std::string>& command, const std::vector<std::string>& metrics,
                        const std::string& kernel_filter);

}  // namespace rooftile
