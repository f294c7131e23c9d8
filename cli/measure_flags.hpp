// What measuring takes whatever is measured, and how it ends; shared by a single problem, a suite and the ladder.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/options.hpp"

namespace rooftile::cli {

/// The fields of every `measure`.
std::span<const Field> measure_fields();

struct MeasureFlags {
    MeasureFlags(const Given& given, const OutputFlags& output);

    const Given& given;
    OutputFlags output;
    std::string mode, seed, rounds, confirm, suite, filter, max_seconds;
    bool timings = false;
};

/// Checked. Throws RequestError.
MeasureOptions measure_options(const MeasureFlags& flags, const Operation& operation,
                               std::chrono::steady_clock::time_point start);

/// The GPU that runs, whose roofs count, and what is planned for: another machine where the flags name one.
struct LiveTarget {
    LiveMachine live;
    Target target;
};
/// Throws RequestError of a named machine first, then Error(no_gpu).
LiveTarget live_target(const Given& given, int device);

/// Throws RequestError where a flag is given that only a suite has.
void refuse_suite_flags(const MeasureFlags& flags);
/// Throws RequestError where a suite's file has what is given: any of `fields` in the group of problems.
void refuse_problem(const Given& given, const Operation& operation);

/// What stands below a run's text: its notes and, where the flags ask for them, its timings.
std::string closing_text(const std::vector<std::string>& notes, const std::vector<Timing>& timings,
                         const MeasureFlags& flags, const Terminal& terminal);

/// The exit code of a run with a wrong result or a kernel that did not compile; says on stderr which.
int verdict(bool unproven, bool unbuilt);

}  // namespace rooftile::cli
