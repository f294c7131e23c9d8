// A machine's numbers as the formulas of tiled matrix kernels take them: one plain struct, read in one place before a search.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/tiled/power.hpp"

namespace rooftile {

/// What L2 takes for rows of TMA boxes that begin off lines of 128 B, as many times as for those on them, all SMs loading.
struct LineCost {
    double apart = unknown_number;     ///< each SM loads rows of its own
    double together = unknown_number;  ///< all load the same rows
    /// Or as if it were; only there do neighbours' loads of one row become one (l2.coalesced).
    bool on_line() const { return apart + together != apart + together; }
    double multicast = unknown_number; ///< each SM loads a part for all of its cluster, where that takes otherwise
    double clustered = 1;              ///< times more where SMs of a cluster wait for each other's loads
    double of(double readers, int sharing = 1, int cluster_ctas = 1) const {
        if (on_line()) return 1;
        const double one = sharing > 1 && multicast == multicast ? multicast : readers > 1 ? together : apart;
        return cluster_ctas > 1 ? one * clustered : one;
    }
};

/// Each number in the unit that the formulas use. NaN: unknown.
struct MatrixHardware : MatrixPower {
    std::string family;                            ///< of matrix instructions: "wgmma"; empty: unknown
    double sms = unknown_number;                   ///< count
    double clock_hz = unknown_number;              ///< of whatever is a cycle here
    double flops_per_cycle = unknown_number;       ///< of one SM's matrix units, for the type and its accumulator
    double issue_slots = unknown_number;           ///< warp instructions a cycle of one SM, where CUDA cores multiply
    double issue_lanes = unknown_number;           ///< threads of an SM whose instruction its schedulers issue in a cycle
    double exponentials_per_cycle = unknown_number, arithmetic_per_cycle = unknown_number,
           comparisons_per_cycle = unknown_number;  ///< of one SM: special functions, fp32 multiply-adds, maxima
    double peak_flops = unknown_number;            ///< FLOP/s of the GPU
    double shared_bandwidth = unknown_number;      ///< B/clk of one SM
    double l2_port = unknown_number;               ///< B/clk that one SM asks of L2 at most, at clock_hz
    double l2_share = unknown_number;              ///< B/clk for each SM when all pull at once, at clock_hz
    /// Of an image's pixels, inside and outside of it, and these in parts that are multicast; unknown: as rows of a matrix, outside none.
    double image_inside = unknown_number, image_outside = unknown_number, image_outside_multicast = unknown_number, image_clustered = unknown_number;
    LineCost off_line[3] = {};  ///< of rows 16, 32 and 64 B past a line and any multiple of it; unknown: as on the line
    /// Tiles at the edges of the result end with it, and compute again what they share with the tiles before.
    bool edges_repeat = false;
    /// B/clk that each SM stores when all do; unknown: what its port takes. By TMA, by TMA in rows that begin amid a sector of
    /// 32 B, by rows from registers whatever they begin at, and by element, two side by side and two one above the other.
    double store_share = unknown_number, store_amid_sector = unknown_number, store_by_rows = unknown_number, store_by_element = unknown_number,
           store_by_element_turned = unknown_number;
    double dram_share = unknown_number;      ///< B/clk for each SM when all pull at once
    double dram_bandwidth = unknown_number;  ///< B/s of the GPU, sustained where known
    double copy_bandwidth = unknown_number;  ///< B/s read plus written, sustained where known
    double dram_per_sm = unknown_number;     ///< B/clk that one SM streams at most; NaN: no limit known
    double dram_per_sm_alone =
        unknown_number;  ///< the same where at most half of the SMs stream; NaN: no more than dram_per_sm
    double l2_coalesced = 1,  ///< loads of one line, by neighbours, for each that reaches L2
        l2_multicast = 1;     ///< what reaches L2 for each line that a cluster shares
    double l2_parts = 1;      ///< halves: what both sides read crosses from one to the other
    double l2_bytes = unknown_number;       ///< of one partition: what a shared operand may fill before it is evicted
    double on_chip_bytes = unknown_number;  ///< L2, shared memory and registers of the whole GPU
    double dram_latency = unknown_number, l2_latency = unknown_number,
           tma_latency = unknown_number;      ///< cycles; tma: beyond a plain load
    /// Of a TMA load that L2 answers, where it answers few: cycles at any clock, as probed.
    double few_loads_latency() const { return l2_latency + tma_latency; }
    double load_latency = unknown_number;     ///< cycles at clock_hz, of one that L2 answers amid the loads of a product
    bool load_in_seconds = false;             ///< given so: it takes as long at any clock
    double launch_seconds = unknown_number;   ///< of a programmatic dependent, where the kernel may be launched as one
    double programmatic_saving = unknown_number;  ///< seconds that a plain launch of such a kernel takes longer
    double shared_per_cta = unknown_number, shared_per_sm = unknown_number, shared_reserved = 0, shared_unit = 1;  ///< B
    bool async_copy = true;        ///< to shared memory, past the registers; else the next tile waits in them [M6]
    bool moves_registers = false;  ///< setmaxnreg
    double registers_per_sm = unknown_number, registers_per_thread = unknown_number, register_unit = 1;  ///< 32-bit registers
    double threads_per_cta = unknown_number, threads_per_sm = unknown_number, ctas_per_sm = unknown_number;  ///< count
    double cluster_ctas = 1;                    ///< of the largest cluster; 1 where there are none
    double cluster_sms[9] = {};                 ///< by size of cluster: SMs that such clusters can use; 0 unknown
    double sms_per_gpc = unknown_number;        ///< of a typical GPC: a cluster stands within one
    double sm_skew = 0;                         ///< share of a step by which one GPC falls behind the others
    double dsmem_bandwidth = unknown_number;    ///< B/clk into one SM from shared memory of others in its cluster
    double dsmem_latency = unknown_number, cluster_barrier = unknown_number;  ///< cycles
    /// Cycles; unknown: not charged.
    double loaded_latency = unknown_number;     ///< of a TMA load from DRAM under load; unknown: unloaded
    double l2_loaded_latency = unknown_number;  ///< the same of what L2 has; unknown: as from DRAM
    double store_latency = unknown_number, store_rows_turn = unknown_number, tile_turn = unknown_number, step_floor = unknown_number;
    /// From a warpgroup's first wgmma to what it finds in its registers, beyond what the matrix units take; unknown: not charged.
    double wgmma_latency = unknown_number;
    /// t^n of a k-step is the sum of the t^n of products and of shared memory's port; unknown: all of it overlaps.
    double mma_overlap_exponent = unknown_number;
    /// Cycles of a product of few rows by mma.sync beside its copies: of a block, of each word of A that a thread brings of it, and of a wave;
    /// unknown: not charged.
    double few_step = unknown_number, few_word = unknown_number, few_start = unknown_number;
    /// The same of rows that are gathered from an image: of a wave, and of each of its steps.
    double gather_start = unknown_number, gather_step = unknown_number;
    /// The same of packed weights: of a launch's end and each row of its tiles, by few rows; of a tile's end and each of its rows, by many.
    double quantised_end = unknown_number, quantised_row = unknown_number, quantised_tile = unknown_number, quantised_tile_row = unknown_number;
    /// t^n of a wave is the sum of the t^n of DRAM's time and of the longest of all else; unknown: all of it overlaps.
    double dram_overlap_exponent = unknown_number;
};

/// What a kernel reads a machine for.
struct MatrixUse {
    std::string_view input;                     ///< "bf16", of both operands; sums are fp32
    std::optional<Clock> clock{}, sustained{};  ///< that makes seconds cycles; under sustained matrix work
    std::vector<std::string_view> needs{};      ///< keys whose absence is to be named; "rate" is that of the matrix instruction
    std::string family{};                       ///< of instructions; empty: wgmma where the machine has it, else its fastest
};

/// Keys that are unknown and needed are appended to `unknown`, once each. Throws RequestError where power.sustained leaves
/// nothing above power.static.
MatrixHardware matrix_hardware(const Machine& machine, MatrixUse use, std::vector<std::string>& unknown);

/// The same in cycles of SMs that run at `clock`: what is beyond them keeps its own pace.
template <class Hardware>
Hardware at_clock(Hardware hw, double clock) {
    const double scale = clock / hw.clock_hz;
    if (hw.load_in_seconds) hw.load_latency *= scale;
    hw.l2_share /= scale, hw.l2_port /= scale;
    return hw;
}

/// Why no product of `input` can be planned for the machine; empty where one can.
std::string missing_matrix_type(const Machine& machine, std::string_view input);

/// The clock of sustained matrix work on `input`, else the boost clock.
std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input);

}  // namespace rooftile
