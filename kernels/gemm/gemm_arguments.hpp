// Run-time arguments of every GEMM kernel: those of all matrix kernels.
#pragma once

#include "kernels/matrix/matrix_arguments.hpp"

namespace rooftile {

using GemmArguments = MatrixArguments;

}  // namespace rooftile
