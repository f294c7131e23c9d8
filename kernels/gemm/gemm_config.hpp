// The one template parameter of sm90_gemm: filled by the planner, read by the kernel. It is that of all matrix kernels.
#pragma once

#include "kernels/matrix/matrix_config.hpp"

namespace rooftile {

using Sm90GemmConfig = MatrixConfig;

}  // namespace rooftile
