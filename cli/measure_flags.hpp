// What `measure gemm` takes and how it ends, shared by a single problem, a suite and the ladder.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/gemm_arguments.hpp"
#include "cli/gemm_variants.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/gemm/device/measure.hpp"

namespace rooftile::cli {

struct MeasureFlags {
    GemmFlags gemm;
    VariantFlags variants;
    OutputFlags output;
    std::string mode = "sustained", baseline = "cublaslt", seed, rounds, runoff;
    std::string suite, filter, max_seconds;
    bool timings = false, counters = false, ladder = false, explain = false, energy = false, blame = false;
    bool no_time = false;
};

/// Checked. Throws RequestError.
MeasureOptions measure_options(const MeasureFlags& flags, std::chrono::steady_clock::time_point start);

/// The GPU that runs, whose roofs count, and what is planned for: another machine where the flags name one.
struct LiveTarget {
    LiveMachine live;
    Target target;
};
/// Throws RequestError of a named machine first, then Error(no_gpu).
LiveTarget live_target(const GemmFlags& flags, int device);

/// What stands below a run's text: its notes and, where the flags ask for them, its timings.
std::string closing_text(const std::vector<std::string>& notes, const std::vector<Timing>& timings,
                         const MeasureFlags& flags, const Terminal& terminal);

/// The exit code of a run with a wrong result or a kernel that did not compile; says on stderr which.
int verdict(bool wrong, bool unbuilt);

/// `measure gemm --suite`: every problem of the file, one row a plan appended to --out as each is done.
int measure_suite(const MeasureFlags& flags, const Invocation& invocation);

/// `measure fuse --suite`, the same.
struct FuseFlags;
int measure_fuse_suite(const FuseFlags& fuse, const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
