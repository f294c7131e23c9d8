// Another program, run to its end.
#pragma once

#include <string>
#include <vector>

namespace rooftile {

struct ChildOutcome {
    int code = -1;   ///< exit code; -1: a signal ended it
    int signal = 0;  ///< which
    std::string out, err;
};

/// Runs `command`, whose first word is the program's path, without a shell, and collects what it writes. Throws Error(internal) where
/// it does not start.
ChildOutcome run_child(const std::vector<std::string>& command);

}  // namespace rooftile
