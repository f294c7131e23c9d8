// From a configuration of sm90_few_quantised and a shape to its source and what a launch needs.
#pragma once

#include <string>

#include "kernels/gemm/sm90_few_quantised_config.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// "rooftile::sm90_few_quantised<rooftile::Sm90QuantisedConfig{.tile_m=8, ...}>", as sm90_name_expression().
std::string quantised_name_expression(const Sm90QuantisedConfig& config);
Source quantised_source(const Sm90QuantisedConfig& config);

/// Throws RequestError naming the first size, leading dimension or pointer that the kernel cannot address.
void check_operands(const Sm90QuantisedConfig& config, const GemmShape& shape, const void* a, const void* b,
                    const void* c);

}  // namespace rooftile
