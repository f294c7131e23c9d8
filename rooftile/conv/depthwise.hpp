// Depthwise convolutions by matrix units, a channel's filter as bands: which places and channels a CTA has, and what that takes.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/conv/direct.hpp"

namespace rooftile {

/// What a request may fix; the rest of a configuration follows from the problem and these.
struct DepthwiseRequest {
    std::optional<int> images{}, groups{}, rows{}, blocks{}, channels{}, warps{};
    bool any() const { return images.has_value(); }  // they are one flag's
};
struct DepthwiseKnobs {
    using Config = DepthwiseConvConfig;
    using Request = DepthwiseRequest;
    template <class Visit>
    static void each(Visit visit) {
        using Number = Knob<Config, Request, int>;
        constexpr auto always = Recorded::always;
        constexpr std::string_view flag = "planes", form = "IxGxRxBxCxW";
        visit(Number{{"tile_images", flag, form, "Of a CTA at once: I images' G groups of R rows (1 to 8) of B blocks of 8 places, by C channels (8, 16, ...) and W warps", {1, 64}, always}, &Config::images, &Request::images});
        visit(Number{{"row_groups", flag, form, "", {1, 64}, always}, &Config::groups, &Request::groups});
        visit(Number{{"group_rows", flag, form, "", {1, 8}, always}, &Config::rows, &Request::rows});
        visit(Number{{"tile_blocks", flag, form, "", {1, 64}, always}, &Config::blocks, &Request::blocks});
        visit(Number{{"tile_channels", flag, form, "", {8, 64}, always}, &Config::channels, &Request::channels});
        visit(Number{{"warps", flag, form, "", {1, 8}, always}, &Config::warps, &Request::warps});
    }
};

// As those of direct.hpp.
Demand demand_of(const ConvProblem& problem, const DepthwiseConvConfig& config);
TilePace tile_pace(const Machine& machine, const Demand& demand, const DepthwiseConvConfig& config);
void add_steps(DirectSteps& steps, const DepthwiseConvConfig& config);

/// All that fit, the fastest first, none where it is no such convolution or, unless `fixed` asks for it, where its time is unknown.
std::vector<DirectPlan> depthwise_plans(const Machine& machine, const ConvProblem& problem, const DepthwiseRequest& fixed, Rejected& rejected);

}  // namespace rooftile
