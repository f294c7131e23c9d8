// A machine's numbers as the formulas for memory-bound kernels want them.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "rooftile/fuse/fit.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// NaN: unknown.
struct FuseHardware {
    double sms, clock_hz;  ///< count; the highest clock: nothing here loads the matrix units
    double read_bandwidth, write_bandwidth,
        copy_bandwidth;     ///< B/s of DRAM; of a copy: read and written together
    double l2_bandwidth;    ///< B/s
    double l2_bytes;        ///< that a streamed tensor may fill and be found in
    double l2_port;         ///< B/clk into one SM
    double l2_all_bytes;    ///< of lines that one SM each reads: in all halves
    double dram_latency;    ///< cycles, unloaded
    double l2_latency;      ///< cycles
    double arithmetic_latency;  ///< cycles from an instruction to one that takes its result
    double loaded_latency;  ///< cycles with the pipe full; the unloaded one where unknown
    double launch_seconds;
    double issue_lanes;  ///< instructions of one lane that an SM issues a cycle
    double mufu_rate;    ///< a cycle and SM
    double alu_rate;     ///< instructions of one lane that the integer and logic pipe takes, a cycle and SM
    double registers_per_sm, registers_per_thread;
    double threads_per_cta, threads_per_sm, ctas_per_sm;
    double shared_per_cta, shared_per_sm, shared_reserved;  ///< B
    double l1_unified, carveout_step;  ///< B: L1 and shared memory, and what they share in
    double sm_bandwidth;               ///< B/clk from DRAM into one SM at most
    double streams_derate;               ///< share of DRAM's rate that many rows side by side lose
    double cta_interval, cluster_start;  ///< cycles
    double cluster_ctas;                            ///< of the largest cluster; 1 where there are none
    double dsmem_latency;                           ///< cycles
    std::string read_key, loaded_latency_key;       ///< the keys that those numbers stand under
    FuseFit fit;                                    ///< to runs
};

/// Keys that are unknown are appended to `unknown`, once each.
FuseHardware fuse_hardware(const Machine& machine, std::vector<std::string>& unknown);

/// Cycles that a cluster of `size` CTAs starts later than one CTA does; 0 where cluster.start is unknown.
double cluster_start_cycles(const FuseHardware& hw, double size);

/// Bytes of an SM that L1 has beside `shared_bytes` of shared memory, the reserves of CTAs among them; NaN where unknown. The
/// driver takes the next step while less than 1 KiB of one is unused (docs/facts.md 89); here, while less than four reserves
/// are. A load takes its lines of L1 when it is issued: no more are on their way than there is room for.
double l1_beside(const FuseHardware& hw, double shared_bytes);

/// SMs that clusters of `size` CTAs can use, one on each; all where nobody measured it.
double cluster_sms(const Machine& machine, int size);

}  // namespace rooftile
