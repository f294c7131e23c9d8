// Kernels of frameworks that mostly move their tensors, as expressions and launches of ours.
#pragma once

#include "rooftile/names/known_kernels.hpp"

namespace rooftile {

const KnownKernels& known_passes();

}  // namespace rooftile
