#include "rooftile/fuse/hardware.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/warp.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

FuseHardware fuse_hardware(const Machine& m, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const auto clock = m.number<Clock>("clock.boost");
    const MachineReader read(m, clock, &unknown), optional(m, clock);
    FuseHardware hw{};
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    // What was measured rather than the data sheet's number [M2].
    hw.read_key = read.first_known({"dram.sustained_read", "dram.bandwidth"});
    hw.read_bandwidth = read.bandwidth(hw.read_key);
    hw.write_bandwidth = read.bandwidth(read.first_known({"dram.sustained_write", "dram.bandwidth"}));
    hw.copy_bandwidth =
        read.bandwidth(read.first_known({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}));
    hw.l2_bandwidth = read.bandwidth("l2.bandwidth");
    hw.l2_port = optional.bandwidth_per_sm("l2.port");
    hw.l2_all_bytes = read.number<Bytes>("l2.size");
    hw.l2_bytes = hw.l2_all_bytes / known_or(optional.count("l2.partitions"), 1);
    hw.dram_latency = read.cycles("dram.latency");
    hw.l2_latency = read.cycles("l2.latency");
    hw.arithmetic_latency = optional.cycles("arithmetic.latency");
    hw.loaded_latency_key = read.first_known({"tma.latency_loaded", "dram.latency"});
    hw.loaded_latency = read.cycles(hw.loaded_latency_key);
    hw.fit = fuse_fit(m);
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.issue_lanes = read.count("sm.partitions") * warp_threads;
    hw.mufu_rate = optional.number<OpsPerCycle>("rate.mufu", Per::sm);
    hw.alu_rate = optional.number<OpsPerCycle>("rate.alu", Per::sm);
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.registers_per_thread();
    hw.threads_per_cta = read.threads_per_cta();
    hw.threads_per_sm = warp_threads * read.count("sm.max_warps");
    hw.ctas_per_sm = read.count("sm.max_ctas");
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.shared_per_sm = read.number<Bytes>("shared.per_sm");
    hw.shared_reserved = known_or(optional.number<Bytes>("shared.reserved_per_cta"), 0);
    hw.l1_unified = optional.number<Bytes>("l1.unified");
    hw.carveout_step = optional.number<Bytes>("shared.carveout_step");
    hw.sm_bandwidth = optional.number<BytesPerCycle>("dram.per_sm_alone", Per::sm);
    hw.streams_derate = optional.number<Ratio>("dram.derate.streams");
    hw.cta_interval = optional.cycles("cta.interval");
    hw.cluster_start = optional.cycles("cluster.start");
    hw.cluster_ctas =
        m.has("cluster") ? known_or(optional.count(read.first_known({"cluster.max", "cluster.max_portable"})), 1) : 1;
    hw.dsmem_latency = optional.cycles("dsmem.latency");
    return hw;
}

double cluster_start_cycles(const FuseHardware& hw, double size) {
    // A doubling more or less: the places of a whole cluster are free later than one CTA's.
    return max_known(hw.cluster_start, 0) * (1 + std::log2(size)) / 2;
}

double l1_beside(const FuseHardware& hw, double shared_bytes) {
    constexpr double reserves = 4;
    const double unused = hw.shared_per_sm - shared_bytes - reserves * hw.shared_reserved;
    const double given = whole(max_known(unused, 0) / hw.carveout_step) * hw.carveout_step;
    return hw.l1_unified - hw.shared_per_sm + given;
}

double cluster_sms(const Machine& machine, int size) {
    const double all = machine.count("sm.count").value_or(unknown_number);
    if (size <= 1) return all;
    // What nobody measured is as the largest size below it that somebody did.
    constexpr int largest_key = 8;
    for (int known = std::min(size, largest_key); known > 1; known /= 2) {
        const auto sms = machine.count("cluster.sms_" + std::to_string(known));
        if (sms) return *sms;
    }
    return all;
}

}  // namespace rooftile
