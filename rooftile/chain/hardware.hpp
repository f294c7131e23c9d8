// A machine's numbers as a chain's formulas want them: those of tiled matrix kernels, and one of its own kernel.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

struct ChainHardware : MatrixHardware {
    double product_stretch;  ///< of products beside other work
};

/// Keys that are unknown are appended to `unknown`, once each.
ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
