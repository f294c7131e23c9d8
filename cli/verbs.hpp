// The verbs of the command line. Each file cli/VERB.cpp adds its verb to the parser; what was asked for
// runs after parsing, so that a wrong request is refused before anything happens.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace rooftile::cli {

/// What parsing found to do.
struct Invocation {
    std::string command;  ///< the whole command line, quoted for a shell; documents carry it
    std::chrono::steady_clock::time_point start;  ///< of the program, for --timings
    std::function<int()> run;                     ///< returns the exit code; empty: nothing was asked for
};

void add_machine(CLI::App& app, Invocation& invocation);
void add_plan(CLI::App& app, Invocation& invocation);
void add_simulate(CLI::App& app, Invocation& invocation);
void add_build(CLI::App& app, Invocation& invocation);
void add_measure(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
/// Verbs that have their place and no work yet: sweep, validate.
void add_later(CLI::App& app, Invocation& invocation);

/// Throws RequestError: `what` is not available in this version.
[[noreturn]] void not_available(const std::string& what);

}  // namespace rooftile::cli
