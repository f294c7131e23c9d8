// Two plans compiled to one kernel of both.
#pragma once

#include "rooftile/tiled/device/two_products.hpp"

namespace rooftile {

/// GEMM's facet on the device. Tensors of its kernels: A, B and the first epilogue's operands, B and operands of the second one, and its
/// result.
const TwoProductsOnDevice& two_gemms_on_device();

}  // namespace rooftile
