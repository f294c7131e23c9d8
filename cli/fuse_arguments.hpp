// What `plan fuse`, `build fuse` and `measure fuse` share: the expression, its tensors, the machine, what is
// fixed.
#pragma once

#include <string>
#include <vector>

#include "cli/gemm_arguments.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile::cli {

/// The flags as written; empty: not given.
struct FuseFlags {
    std::string expression;
    std::vector<std::string> tensors;
    GemmFlags machine;  ///< --machine and --set alone
    std::string width, items, threads, threads_per_row, cluster, stages, reducing, home, persistent,
        alignment, top;
};

void add_fuse_flags(CLI::App& verb, FuseFlags& flags, int default_top);

/// Throw RequestError; a fault of the expression points at its column.
FuseProblem problem_of(const FuseFlags& flags);
FuseRequest request_of(const FuseFlags& flags, int default_top);

void add_plan_fuse(CLI::App& plan, struct Invocation& invocation);
void add_build_fuse(CLI::App& build, struct Invocation& invocation);
void add_measure_fuse(CLI::App& measure, struct Invocation& invocation);

}  // namespace rooftile::cli
