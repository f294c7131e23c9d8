// A machine's numbers as a chain's formulas want them: one plain struct, read once.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

/// NaN: unknown.
struct ChainHardware : MatrixHardware {
    double exponentials_per_cycle, issue_lanes;  ///< of one SM
    double product_stretch;                      ///< of products beside other work
    double shared_bandwidth, l2_port;            ///< B/clk of one SM
    double l2_partitions;                        ///< of l2_bytes each
    double dram_copy_bandwidth;                  ///< B/s of as many reads as writes
    double dram_overlap_exponent;                ///< t^n is the sum of the t^n of DRAM's time and of all else; unknown: all of it overlaps
    double sms_per_gpc, sm_skew;
};

/// Keys that are unknown are appended to `unknown`, once each.
ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
