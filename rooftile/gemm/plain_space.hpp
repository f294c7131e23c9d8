// The space of kernels without clusters, and two of them that are planned and never built: that of machines with
// mma.sync and no cp.async, and `generic`, which knows of a machine only its five numbers [M8].
#pragma once

#include <span>

#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

/// What each dimension is searched over where the request does not fix it.
struct PlainSpace {
    std::span<const int> tile_ms, tile_ns, tile_ks, warpgroups, ctas;
};

/// Takes each candidate to the family's examine().
template <class Family>
void enumerate_plain_tiles(const Family& family, const PlainSpace& space, const GemmHardware& hw,
                           const GemmProblem& problem, const GemmRequest& request, GemmVisitor& visitor) {
    const GemmCandidate start{config_of(request)};
    for (int tile_m : choices(request.tile_m, space.tile_ms))
        for (int tile_n : choices(request.tile_n, space.tile_ns))
            for (int tile_k : choices(request.tile_k, space.tile_ks))
                for (int count : choices(request.consumer_warpgroups, space.warpgroups))
                    for (int ctas_per_sm : choices(request.ctas_per_sm, space.ctas)) {
                        GemmCandidate c = start;
                        c.tile_m = tile_m, c.tile_n = tile_n, c.tile_k = tile_k;
                        c.consumer_warpgroups = count, c.ctas_per_sm = ctas_per_sm;
                        if (const Constraint constraint = family.examine(hw, problem, c)) visitor.reject(constraint, c, 1);
                        else visitor.accept(c);
                    }
}

/// Registers a thread may have with `ctas` CTAs of `threads` on an SM, in the unit warps are given them.
double launch_registers(const GemmHardware& hw, int threads, int ctas);

/// Threads, clusters, schedule and registers.
Constraint plain_constraints(const GemmHardware& hw, const GemmCandidate& candidate);

/// mma.sync alone: the next tile waits in registers [M6].
struct MmaOnlyFamily {
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const;
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;

    static constexpr int working_registers = 40;  ///< addresses, loop state, conversion [M12: 32-40]
};

struct GenericGemmFamily {
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const;
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;
};

}  // namespace rooftile
