// Kernels of cuBLAS and CUTLASS as the physics of gemm/model.hpp sees them: what their names say of tile, ring and cluster stands where
// the search's own choices would.
#pragma once

#include "rooftile/names/known_kernels.hpp"

namespace rooftile {

const KnownKernels& known_gemm_kernels();

}  // namespace rooftile
