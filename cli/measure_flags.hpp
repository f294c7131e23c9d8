// What `measure gemm` takes, shared by a single problem and a suite.
#pragma once

#include <chrono>
#include <string>

#include "cli/gemm_arguments.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile::cli {

struct MeasureFlags {
    GemmFlags gemm;
    OutputFlags output;
    std::string mode = "sustained", baseline = "cublaslt", seed, rounds;
    std::string suite, filter, max_seconds;
    bool timings = false, counters = false, ladder = false;
};

/// Checked. Throws RequestError.
MeasureOptions measure_options(const MeasureFlags& flags, std::chrono::steady_clock::time_point start);

/// `measure gemm --suite`: every problem of the file, one row a plan appended to --out as each is done.
int measure_suite(const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
