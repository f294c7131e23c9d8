// Libraries' kernels of attention as problems and plans of ours.
#pragma once

#include "rooftile/names/known_kernels.hpp"

namespace rooftile {

const KnownKernels& known_attention_kernels();

}  // namespace rooftile
