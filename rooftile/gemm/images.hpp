// Products of which an operand is taken from an image, as who plans convolutions asks for them.
#pragma once

#include "rooftile/tiled/products_of_images.hpp"

namespace rooftile {

/// GEMM's facet.
const ProductsOfImages& gemm_of_images();

}  // namespace rooftile
