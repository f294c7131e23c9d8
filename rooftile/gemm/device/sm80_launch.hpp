// From a configuration of sm80_gemm and a shape to its source and what a launch needs.
#pragma once

#include <string>

#include "kernels/gemm/sm80_gemm_arguments.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// "rooftile::sm80_gemm<rooftile::Sm80GemmConfig{.tile_m=128, ...}>", as sm90_name_expression().
std::string sm80_name_expression(const Sm80GemmConfig& config);
/// `arch`: "sm_80" and later.
Source sm80_source(const Sm80GemmConfig& config, const std::string& arch);

/// Throws RequestError naming the first size, leading dimension or pointer that the kernel cannot address.
void check_operands(const Sm80GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                    const void* c);
/// CTAs of a launch; throws RequestError where there are 2^31 tiles or more.
int sm80_grid_of(const Sm80GemmConfig& config, const GemmShape& shape, int resident_ctas);

}  // namespace rooftile
