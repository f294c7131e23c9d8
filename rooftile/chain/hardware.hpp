// A machine's numbers as a chain's formulas want them: one plain struct, read once.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// NaN: unknown.
struct ChainHardware {
    std::string family;            ///< of matrix instructions: "wgmma"; empty: unknown
    double sms, clock_hz, top_hz;  ///< clock_hz: of energies; top_hz: where power does not bind
    double flops_per_cycle, exponentials_per_cycle, issue_lanes;  ///< of one SM
    double shared_bandwidth, l2_port, l2_share;                   ///< B/clk of one SM; l2_share: when all ask
    double l2_bytes;                                              ///< of one partition
    double dram_bandwidth, dram_copy_bandwidth;                   ///< B/s; of reads, and of as many reads as writes
    double load_latency, step_cycles;                             ///< cycles
    double launch_seconds;
    double registers_per_sm, registers_per_thread, shared_per_cta;
    double sms_per_gpc, sm_skew;
    double sustained_watts, static_watts, flop_joules, fill_joules, shared_read_joules, dram_joules, energy_exponent;
};

/// Keys that are unknown are appended to `unknown`, once each.
ChainHardware chain_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
