// What every kernel takes of a machine whose matrix products are fed by copies into shared memory: one struct, read in one place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// NaN: unknown.
struct MatrixHardware {
    std::string family;            ///< of matrix instructions: "wgmma"; empty: unknown
    double sms, clock_hz, top_hz;  ///< clock_hz: under sustained matrix work, and of energies; top_hz: where power does not bind
    double flops_per_cycle;        ///< of one SM
    double l2_share;               ///< B/clk of one SM when all ask
    double l2_bytes;               ///< of one partition
    double dram_bandwidth;         ///< B/s of reads
    double load_latency;           ///< cycles, of a TMA load that L2 serves
    double step_cycles;            ///< what a step of dependent products has at least; unknown: not charged
    double launch_seconds;
    double registers_per_sm, registers_per_thread, shared_per_cta;
    // Power; where one of them is unknown the sustained clock stands.
    double sustained_watts, static_watts, flop_joules, fill_joules, shared_read_joules, dram_joules, energy_exponent;
};

/// Of products of `input` ("bf16") with fp32 sums. Keys that are unknown and missed are appended to `unknown`, once each.
MatrixHardware matrix_hardware(const Machine& machine, std::string_view input, std::vector<std::string>& unknown);

/// Why no product of `input` can be planned for the machine; empty where one can.
std::string missing_matrix_type(const Machine& machine, std::string_view input);

/// The clock of sustained matrix work on `input`, else the boost clock.
std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input);

}  // namespace rooftile
