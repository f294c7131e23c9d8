// `simulate conv`: a convolution's tiles through L2, pixel by pixel, next to what must move.
#pragma once

#include "rooftile/report/simulates.hpp"

namespace rooftile {

/// The facet; of convolutions as products.
const Simulates& conv_simulates();

}  // namespace rooftile
