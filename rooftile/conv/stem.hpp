// Convolutions of few channels by matrix units, from rows of pixels in shared memory: which places and filters a warp has, and what that takes.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/conv/direct.hpp"

namespace rooftile {

/// What a request may fix; the rest of a configuration follows from the problem and these.
struct StemRequest {
    std::optional<int> tile_y{}, tile_x{}, warp_tiles{}, warp_filters{}, warps{};
    bool any() const { return tile_y || tile_x || warp_tiles || warp_filters || warps; }
};
struct StemKnobs {
    using Config = StemConvConfig;
    using Request = StemRequest;
    template <class Visit>
    static void each(Visit visit) {
        using Number = Knob<Config, Request, int>;
        constexpr auto always = Recorded::always;
        visit(Number{{"tile_y", "places", "YxX", "Places of a CTA at once, rows of multiples of 8", {1, 1024}, always}, &Config::tile_y, &Request::tile_y});
        visit(Number{{"tile_x", "places", "YxX", "", {8, 8192}, always}, &Config::tile_x, &Request::tile_x});
        visit(Number{{"warp_tiles", "warp_tile", "TxF", "Of a warp at once: T times 16 places (1, 2, 4) by F filters (32, 64)", {1, 4}, always}, &Config::warp_tiles, &Request::warp_tiles});
        visit(Number{{"warp_filters", "warp_tile", "TxF", "", {32, 64}, always}, &Config::warp_filters, &Request::warp_filters});
        visit(Number{{"warps", "warps", "N", "Warps of a CTA: 4 or 8", {4, 8}, always}, &Config::warps, &Request::warps});
    }
};

// As those of direct.hpp.
Demand demand_of(const ConvProblem& problem, const StemConvConfig& config);
TilePace tile_pace(const Machine& machine, const Demand& demand, const StemConvConfig& config);
void add_steps(DirectSteps& steps, const StemConvConfig& config);

/// All that fit, the fastest first, none where it is no such convolution or, unless `fixed` asks for it, where its time is unknown.
std::vector<DirectPlan> stem_plans(const Machine& machine, const ConvProblem& problem, const StemRequest& fixed, Rejected& rejected);

}  // namespace rooftile
