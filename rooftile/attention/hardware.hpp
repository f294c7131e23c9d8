// A machine's numbers as attention's formulas want them: one plain struct, read once before the search.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

/// NaN: unknown.
struct AttentionHardware : MatrixHardware {
    double exponentials_per_cycle;                                       ///< of one SM
    double arithmetic_per_cycle, comparisons_per_cycle, issue_lanes;     ///< of one SM: fp32 multiply-adds, maxima, instructions
    double shared_bandwidth, l2_port;                                    ///< B/clk of one SM
    double threads_per_cta;
    bool moves_registers;                                                ///< setmaxnreg
    double softmax_stretch, softmax_latency;  ///< of one warpgroup's softmax: over its instructions' own time, and cycles beside
    double turn_cycles;                       ///< from tile to tile; unknown: not charged
    double softmax_flops;                     ///< of a score's softmax, in FLOP of products that take as much energy
};

/// Keys that are unknown are appended to `unknown`, once each.
AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
