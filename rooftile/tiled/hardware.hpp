// What every kernel takes of a machine whose matrix products are fed by copies into shared memory: one struct, read in one place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/tiled/power.hpp"

namespace rooftile {

/// NaN: unknown.
struct MatrixHardware : MatrixPower {
    std::string family;            ///< of matrix instructions: "wgmma"; empty: unknown
    double sms, clock_hz;          ///< clock_hz: under sustained matrix work
    double flops_per_cycle;        ///< of one SM
    double l2_share;               ///< B/clk of one SM when all ask
    double l2_bytes;               ///< of one partition
    double dram_bandwidth;         ///< B/s of reads
    double load_latency;           ///< cycles at clock_hz, of a TMA load that L2 serves
    bool load_in_seconds;          ///< given so: it takes as long at any clock
    double step_cycles;            ///< what a step of dependent products has at least; unknown: not charged
    double launch_seconds;
    double registers_per_sm, registers_per_thread, shared_per_cta;
};

/// Of products of `input` ("bf16") with fp32 sums: by wgmma where the machine has it, else by its fastest instruction.
/// Keys that are unknown and missed are appended to `unknown`, once each.
MatrixHardware matrix_hardware(const Machine& machine, std::string_view input, std::vector<std::string>& unknown);

/// The same in cycles of SMs that run at `clock`: what is beyond them keeps its own pace.
template <class Hardware>
Hardware at_clock(Hardware hw, double clock) {
    const double scale = clock / hw.clock_hz;
    if (hw.load_in_seconds) hw.load_latency *= scale;
    hw.l2_share /= scale, hw.l2_port /= scale;
    return hw;
}

/// Of matrix work on `input`, which sustains the clock `sustained`. Throws RequestError where the limit leaves nothing for work.
MatrixPower matrix_power(const MachineReader& read, std::string_view input, std::optional<Clock> sustained);

/// Why no product of `input` can be planned for the machine; empty where one can.
std::string missing_matrix_type(const Machine& machine, std::string_view input);

/// The clock of sustained matrix work on `input`, else the boost clock.
std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input);

}  // namespace rooftile
