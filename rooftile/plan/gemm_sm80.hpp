// The families without TMA and wgmma: cp.async + mma.sync (and its forerunner without cp.async), and
// `generic`, which knows of a machine only its five numbers [M8]. Planned, not yet built.
#pragma once

#include "rooftile/plan/gemm_search.hpp"

namespace rooftile {

struct Sm80GemmFamily {
    bool async_copy = true;  ///< cp.async; without it the next tile waits in registers [M6]

    template <class Visit>
    void for_each(const GemmRequest& request, Visit visit) const;
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& candidate,
                 Footprint& footprint) const;

    static constexpr int working_registers = 40;  ///< addresses, loop state, conversion [M12: 32-40]
};

struct GenericGemmFamily {
    template <class Visit>
    void for_each(const GemmRequest& request, Visit visit) const;
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& candidate,
                 Footprint& footprint) const;
};

/// Tiles, k-spans, warpgroups and CTAs an SM, each fixed by the request or searched.
template <class Visit>
void for_each_plain_tile(const GemmRequest& request, Visit visit) {
    constexpr int tile_ms[] = {64, 128, 192, 256}, tile_ks[] = {16, 32, 64};
    const auto inner = [&](int tile_m, int tile_n, int tile_k) {
        const auto with = [&](int warpgroups, int ctas) {
            visit(GemmCandidate{tile_m, tile_n, tile_k, warpgroups,
                                request.schedule.value_or(Schedule::cooperative),
                                request.cluster_m.value_or(1), request.cluster_n.value_or(1), ctas,
                                request.split_k.value_or(1)});
        };
        const auto residency = [&](int warpgroups) {
            if (request.ctas_per_sm) return with(warpgroups, *request.ctas_per_sm);
            for (int ctas : {1, 2, 4}) with(warpgroups, ctas);
        };
        if (request.consumer_warpgroups) return residency(*request.consumer_warpgroups);
        for (int warpgroups = 1; warpgroups <= 2; ++warpgroups) residency(warpgroups);
    };
    const auto middle = [&](int tile_m, int tile_n) {
        if (request.tile_k) return inner(tile_m, tile_n, *request.tile_k);
        for (int tile_k : tile_ks) inner(tile_m, tile_n, tile_k);
    };
    const auto outer = [&](int tile_m) {
        if (request.tile_n) return middle(tile_m, *request.tile_n);
        for (int tile_n = 16; tile_n <= 256; tile_n += 16) middle(tile_m, tile_n);
    };
    if (request.tile_m) return outer(*request.tile_m);
    for (int tile_m : tile_ms) outer(tile_m);
}

template <class Visit>
void Sm80GemmFamily::for_each(const GemmRequest& request, Visit visit) const {
    for_each_plain_tile(request, visit);
}
template <class Visit>
void GenericGemmFamily::for_each(const GemmRequest& request, Visit visit) const {
    for_each_plain_tile(request, visit);
}

}  // namespace rooftile
