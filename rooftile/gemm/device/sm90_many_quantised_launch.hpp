// From a configuration of sm90_many_quantised and a shape to its source and what a launch needs.
#pragma once

#include <string>

#include "kernels/gemm/sm90_many_quantised_config.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// "rooftile::sm90_many_quantised<rooftile::Sm90ManyQuantisedConfig{.tile_m=128, ...}>", as sm90_name_expression().
std::string many_quantised_name_expression(const Sm90ManyQuantisedConfig& config);
Source many_quantised_source(const Sm90ManyQuantisedConfig& config);

}  // namespace rooftile
