// Another program, run to its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rooftile {

struct ChildOutcome {
    int code = -1;   ///< exit code; -1: a signal ended it
    int signal = 0;  ///< which
    std::string out, err;
};

/// Runs `command`, whose first word is the program's path, without a shell, and collects what it writes. Throws Error(internal) where
/// it does not start. `meanwhile` is called some times a second until the end.
ChildOutcome run_child(const std::vector<std::string>& command, const std::function<void()>& meanwhile = {});

}  // namespace rooftile
