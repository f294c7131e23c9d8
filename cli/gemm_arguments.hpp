// What `plan gemm`, `build gemm` and `measure gemm` share: the problem, the machine, what is fixed.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/problem.hpp"
#include "rooftile/report/context.hpp"

namespace CLI {
class App;
}

namespace rooftile::cli {

/// The flags as written; empty: not given.
struct GemmFlags {
    std::string m, n, k, shape, type, a_major, b_major, lda, ldb, ldc, alpha, beta, batch, epilogue, layout;
    std::string machine;
    std::vector<std::string> set;
    std::string tile, stages, consumer_warpgroups, schedule, cluster, order, group, split_k, ctas_per_sm;
    std::string deferred_store, store_n, pdl, evict_first;
    std::string top;
};

void add_gemm_flags(CLI::App& verb, GemmFlags& flags, int default_top);

/// The three checked against what the library accepts. Throw RequestError, one line.
GemmProblem problem_of(const GemmFlags& flags);
GemmRequest request_of(const GemmFlags& flags, int default_top);

/// What is planned for, and what a reader must know of that choice; empty where the request named it.
struct Target {
    Machine machine;
    std::string note;
};

/// --machine, else the live GPU, else h100-sxm; then every --set.
Target target_of(const GemmFlags& flags);

}  // namespace rooftile::cli
