// A machine's numbers as attention's formulas want them: one plain struct, read once before the search.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// NaN: unknown.
struct AttentionHardware {
    std::string family;  ///< of matrix instructions: "wgmma"; empty: unknown
    double sms, clock_hz, top_hz;  ///< clock_hz: of energies; top_hz: where power does not bind
    double flops_per_cycle, exponentials_per_cycle;  ///< of one SM
    double arithmetic_per_cycle, comparisons_per_cycle, issue_lanes;  ///< of one SM: fp32 multiply-adds, maxima, instructions
    double shared_bandwidth, l2_port, l2_share;      ///< B/clk of one SM; l2_share: when all ask
    double l2_bytes;                                 ///< of one partition
    double dram_bandwidth;                           ///< B/s
    double load_latency;                             ///< cycles, of a TMA load that L2 serves
    double step_cycles;                              ///< what a step of dependent products has at least; unknown: not charged
    double launch_seconds;
    double registers_per_sm, registers_per_thread, threads_per_cta, shared_per_cta;
    bool moves_registers;  ///< setmaxnreg
    double softmax_stretch, softmax_latency;  ///< of one warpgroup's softmax: over its instructions' own time, and cycles beside
    double turn_cycles;       ///< from tile to tile; unknown: not charged
    // Power; where one of them is unknown the sustained clock stands.
    double sustained_watts, static_watts, flop_joules, fill_joules, shared_read_joules, dram_joules, energy_exponent;
    double softmax_flops;  ///< of a score's softmax, in FLOP of products that take as much energy
};

/// Keys that are unknown are appended to `unknown`, once each.
AttentionHardware attention_hardware(const Machine& machine, Type type, std::vector<std::string>& unknown);

}  // namespace rooftile
