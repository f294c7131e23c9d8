// Tensors of values with errors, on the host.
#pragma once

#include <vector>

#include "kernels/expression/bounded.hpp"

namespace rooftile {

/// The elements of one tensor, dense.
using BoundedTensor = std::vector<Bounded>;

}  // namespace rooftile
