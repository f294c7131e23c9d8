// Faults and exit codes. An expected outcome (no tile fits, a number is unknown) is a value, never
// one of these; our own bug is an assert.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rooftile {

/// What a process ends with; docs/command-line.md lists them for users.
enum class ExitCode : int {
    done = 0,
    internal = 1,
    bad_request = 2,
    verification_failed = 3,
    no_gpu = 4,
    compile_failed = 5,
    gpu_failed = 6,
    counters_denied = 7,
    threshold_missed = 8,
    no_plan = 10,
    interrupted = 130,
};

/// A fault. The message is one line a user can act on: what failed, with which values, what to do.
/// `detail` holds what is too long for that line (a compiler's log).
class Error : public std::runtime_error {
  public:
    Error(ExitCode code, const std::string& message, std::string detail = {})
        : std::runtime_error(message), code_(code), detail_(std::move(detail)) {}
    ExitCode code() const { return code_; }
    const std::string& detail() const { return detail_; }

  private:
    ExitCode code_;
    std::string detail_;
};

/// The request is wrong: a bad file, an impossible size, an unknown name (exit code 2).
class RequestError : public Error {
  public:
    explicit RequestError(const std::string& message) : Error(ExitCode::bad_request, message) {}
};

}  // namespace rooftile
