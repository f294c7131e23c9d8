// A machine's numbers as the GEMM formulas want them: one plain struct, read once before the search.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/tiled/power.hpp"

namespace rooftile {

/// What L2 takes for rows of TMA boxes that begin off lines of 128 B, as many times as for those on them, all SMs loading.
struct LineCost {
    double apart = unknown_number;     ///< each SM loads rows of its own
    double together = unknown_number;  ///< all load the same rows
    /// Or as if it were; only there do neighbours' loads of one row become one (l2.coalesced).
    bool on_line() const { return apart + together != apart + together; }
    double of(double readers) const { return on_line() ? 1 : readers > 1 ? together : apart; }
};

/// The machine's numbers a GEMM needs, each in the unit the formulas use. NaN: unknown.
struct GemmHardware : MatrixPower {
    double sms;                                ///< count
    double clock_hz;                           ///< of whatever is a cycle here: fitted_clock()
    double flops_per_cycle;                    ///< of one SM's matrix units, for the type and its accumulator
    double issue_slots = unknown_number;       ///< warp instructions a cycle of one SM, where CUDA cores multiply
    double peak_flops;                         ///< FLOP/s of the GPU
    double shared_bandwidth;                   ///< B/clk of one SM
    double l2_port;                            ///< B/clk that one SM asks of L2 at most, at clock_hz
    double l2_share;                           ///< B/clk for each SM when all pull at once, at clock_hz
    LineCost off_line[3] = {};  ///< of rows 16, 32 and 64 B past a line and any multiple of it; unknown: as on the line
    /// Tiles at the edges of C end with it, and compute again what they share with the tiles before.
    bool edges_repeat = false;
    LineCost a_lines = {}, b_lines = {};  ///< of the problem's operands, as the GEMM reads them
    /// B/clk that each SM stores when all do; unknown: what its port takes. By TMA, by TMA in rows that begin amid a sector of
    /// 32 B, and by element, two side by side and two one above the other.
    double store_share = unknown_number, store_amid_sector = unknown_number, store_by_element = unknown_number,
           store_by_element_turned = unknown_number;
    double dram_share;                         ///< B/clk for each SM when all pull at once
    double dram_bandwidth;                     ///< B/s of the GPU, sustained where known
    double copy_bandwidth = unknown_number;    ///< B/s read plus written, sustained where known
    double dram_per_sm = unknown_number;       ///< B/clk that one SM streams at most; NaN: no limit known
    double dram_per_sm_alone =
        unknown_number;  ///< the same where at most half of the SMs stream; NaN: no more than dram_per_sm
    double l2_coalesced = 1,  ///< loads of one line, by neighbours, for each that reaches L2
        l2_multicast = 1;     ///< what reaches L2 for each line that a cluster shares
    double l2_parts = 1;      ///< halves: what both sides read crosses from one to the other
    double l2_bytes;          ///< of one partition: what a shared operand may fill before it is evicted
    double on_chip_bytes;     ///< L2, shared memory and registers of the whole GPU
    double dram_latency, l2_latency, tma_latency;  ///< cycles; tma: beyond a plain load
    double launch_seconds;  ///< of a programmatic dependent, where the kernel may be launched as one
    double packing_seconds = 0;  ///< of the launch that packs operands, which the kernel waits for
    double programmatic_saving = unknown_number;  ///< seconds that a plain launch of such a kernel takes longer
    double shared_per_cta, shared_per_sm, shared_reserved, shared_unit;  ///< B
    bool async_copy = true;  ///< to shared memory, past the registers; else the next tile waits in them [M6]
    double registers_per_sm, registers_per_thread, register_unit;        ///< 32-bit registers
    double threads_per_cta, threads_per_sm, ctas_per_sm;                 ///< count
    double cluster_ctas;                    ///< of the largest cluster; 1 where there are none
    double cluster_sms[9] = {};             ///< by size of cluster: SMs that such clusters can use; 0 unknown
    double issue_lanes = unknown_number;    ///< threads of an SM whose instruction its schedulers issue in a cycle
    double sms_per_gpc;                     ///< of a typical GPC: a cluster stands within one
    double sm_skew = 0;                     ///< share of a step by which one GPC falls behind the others
    double dsmem_bandwidth;                 ///< B/clk into one SM from shared memory of others in its cluster
    double dsmem_latency, cluster_barrier;  ///< cycles
    /// Cycles; unknown: not charged.
    double loaded_latency = unknown_number;     ///< of a TMA load from DRAM under load; unknown: unloaded
    double l2_loaded_latency = unknown_number;  ///< the same of what L2 has; unknown: as from DRAM
    double store_latency = unknown_number, tile_turn = unknown_number, step_floor = unknown_number;
    /// From a warpgroup's first wgmma to what it finds in its registers, beyond what the matrix units take; unknown: not charged.
    double wgmma_latency = unknown_number;
    /// t^n of a k-step is the sum of the t^n of products and of shared memory's port; unknown: all of it overlaps.
    double mma_overlap_exponent = unknown_number;
    /// t^n of a wave is the sum of the t^n of DRAM's time and of the longest of all else; unknown: all of it overlaps.
    double dram_overlap_exponent = unknown_number;
};

/// The same where a launch begins when the one before it has ended.
inline GemmHardware launched_apart(GemmHardware hw) {
    hw.launch_seconds += known_or(hw.programmatic_saving, 0);
    return hw;
}

/// Reads the numbers for matrix instructions of `family` ("wgmma", "mma_sync", "generic") on `type` with fp32
/// sums, or for CUDA cores' on fp32 ("fma"), at `clock`; empty: that of sustained matrix work. Keys that are unknown are
/// appended to `unknown`, once each. Throws RequestError where power.sustained leaves
/// nothing above power.static.
GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown, std::optional<Clock> clock = {});

}  // namespace rooftile
