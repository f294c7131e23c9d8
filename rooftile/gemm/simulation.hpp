// `simulate gemm`: a plan's tile schedule through L2, and what other operations ask of the products that they are.
#pragma once

#include "rooftile/report/simulates.hpp"

namespace rooftile {

/// GEMM's facet.
const Simulates& gemm_simulates();

}  // namespace rooftile
