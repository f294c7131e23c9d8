// A machine's numbers as attention's formulas want them: those of tiled matrix kernels, and what its softmax was fitted to.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

/// NaN: unknown.
struct AttentionHardware : MatrixHardware {
    double softmax_stretch, softmax_latency;  ///< of one warpgroup's softmax: over its instructions' own time, and cycles beside
    double turn_cycles;                       ///< from tile to tile; unknown: not charged
    double softmax_flops;                     ///< of a score's softmax, in FLOP of products that take as much energy
};

/// Keys that are unknown are appended to `unknown`, once each.
AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
