// From a configuration of sm80_few_gemm and a shape to its source and what a launch needs.
#pragma once

#include <string>

#include "kernels/gemm/sm80_few_gemm_arguments.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// "rooftile::sm80_few_gemm<rooftile::Sm80FewConfig{.tile_m=8, ...}>", as sm90_name_expression().
std::string sm80_few_name_expression(const Sm80FewConfig& config);
/// `arch`: "sm_80" and later.
Source sm80_few_source(const Sm80FewConfig& config, const std::string& arch);

/// Throws RequestError naming the first size, leading dimension or pointer that the kernel cannot address.
void check_operands(const Sm80FewConfig& config, const GemmShape& shape, const void* a, const void* b, const void* c);

}  // namespace rooftile
