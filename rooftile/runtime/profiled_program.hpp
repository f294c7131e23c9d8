// Another program, run with the collector in it.
#pragma once

#include <string>
#include <vector>

#include "rooftile/profile/recorded.hpp"

namespace rooftile {

struct ProfiledProgram {
    int code = 0;    ///< exit code; of one that a signal ended: 128 and the signal's number
    int signal = 0;  ///< 0: it ended by itself
    double wall_ns = 0;
    std::vector<Recorded> recordings;  ///< of each process that used CUDA
};

struct ProfiledRequest {
    std::vector<std::string> command;
    std::string keep;        ///< a folder that keeps the recordings, made where it is not; empty: none does
    bool operators = false;  ///< of a Python program: torch's operators are ranges
};

/// Runs the command with this process's input and outputs; what interrupts this process is the program's to answer. Throws
/// RequestError where it cannot be started or another profiler is set in the environment, Error where CUPTI is not found.
ProfiledProgram run_profiled(const ProfiledRequest& request);

/// The same without a collector, and without recordings.
ProfiledProgram run_plainly(const std::vector<std::string>& command);

}  // namespace rooftile
