// The time of a memory-bound kernel: the greatest of what DRAM, L2, the issue slots and the special function
// units take, and around it the launch and what shows of the first load. NaN stands for an unknown number.
#pragma once

#include "rooftile/core/bound.hpp"
#include "rooftile/fuse/cost.hpp"
#include "rooftile/fuse/hardware.hpp"

namespace rooftile {

/// What one kernel moves and executes in all.
struct FuseWork {
    double dram_read_bytes = 0, dram_written_bytes = 0;
    double l2_read_bytes = 0;  ///< found in L2, beside what comes from DRAM
    OpCost cost;
    double efficiency = 1;  ///< share of the bandwidth that what is in flight and the last wave leave
};

struct FuseTime {
    double seconds;  ///< NaN where a number it needs is unknown; the launch is left out where only it is
    double dram, l2, issue, mufu, launch;  ///< seconds of each alone
    Bound bound;
};

/// SM cycles until all of `cost` is issued: every instruction takes a slot, and the integer and logic pipe has
/// its own rate.
double issue_cycles(const FuseHardware& hw, const OpCost& cost);

FuseTime fuse_time(const FuseHardware& hw, const FuseWork& work);

/// Seconds that DRAM takes: bytes that are read and written side by side at the copy's rate, the rest at
/// that of reads or writes.
double dram_seconds(const FuseHardware& hw, double read_bytes, double written_bytes);

/// Every operation of the chain as a kernel of its own, one after the other.
struct UnfusedTime {
    double seconds = 0;             ///< NaN where unknown
    std::vector<FuseTime> kernels;  ///< in the order of `ops`
};
UnfusedTime unfused_time(const FuseHardware& hw, const std::vector<UnfusedOp>& ops);

}  // namespace rooftile
