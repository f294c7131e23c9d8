// What kernels read and write that mostly move their tensors: PyTorch's own element by element, along rows, and copies.
#pragma once

#include "rooftile/names/kernel_sizes.hpp"

namespace rooftile {

std::optional<PassSizes> pass_sizes(const KernelName& name, const ParameterBytes& parameters, const LaunchExtents& launch);

}  // namespace rooftile
