// The probes as a table.
#include <algorithm>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/probe/groups.hpp"

namespace rooftile {
namespace {

constexpr Probe table[] = {
    {"tma",
     "tma.latency_dram tma.latency_l2 load.latency load.rate tma.rate_dram tma.rate_l2 tma.in_flight l2.port "
     "l2.bandwidth",
     "ns ns ns GB/s/SM GB/s/SM GB/s/SM B B/clk/SM GB/s",
     "TMA from DRAM and L2: one box alone, and bytes a second over bytes in flight", 14, probe_tma},
    {"lines",
     "tma.off_line_16 tma.off_line_32 tma.off_line_64 tma.off_line_shared_16 tma.off_line_shared_32 "
     "tma.off_line_shared_64 tma.outside tma.store tma.store_amid_sector store.rows store.element store.element_turned",
     "1 1 1 1 1 1 GB/s GB/s GB/s GB/s GB/s GB/s",
     "Rows that begin off a 128-byte line of L2, and rows outside a tensor: loads and stores", 3, probe_lines},
    {"energy",
     "power.idle power.static power.sustained energy.exponent energy.flop.bf16 energy.fill energy.dram "
     "clock.sustained.bf16 clock.boost",
     "W W W 1 pJ/FLOP pJ/B pJ/B MHz MHz",
     "Power, SM clock and rates under steady loads, and joules an operation from them", 55, probe_energy},
    {"cluster",
     "cluster.sms_2 cluster.sms_3 cluster.sms_4 cluster.sms_6 cluster.sms_8 barrier.cluster dsmem.latency "
     "dsmem.bandwidth",
     "SMs SMs SMs SMs SMs clk clk B/clk/SM",
     "SMs that clusters can use, their barrier, shared memory of a peer", 4, probe_cluster},
    {"wgmma", "rate.wgmma.bf16.fp32", "FLOP/clk/SM",
     "Cycles of one m64nNk16 from shared memory, N = 16 ... 256", 10, probe_wgmma},
    {"mma_sync", "rate.mma_sync.bf16.fp32 rate.mma_sync.fp16.fp32", "FLOP/clk/SM FLOP/clk/SM",
     "mma.sync m16n8k16 from registers: FLOP a cycle, and what is kept up of them", 6, probe_mma_sync},
    {"wgmma_fill", "", "", "The same while TMA writes shared memory from L2 at 32, 48 and 64 B/clk", 6,
     probe_wgmma_fill},
    {"dram", "dram.sustained_read dram.sustained_write dram.sustained_copy dram.latency",
     "GB/s GB/s GB/s clk", "Device memory by ordinary loads and stores, over bytes in flight", 5, probe_dram},
    {"dram_ceilings", "", "", "Device memory by the share that is written, the order of addresses, and blocks with gaps; counted, too", 6,
     probe_dram_ceilings},
    {"l2", "l2.latency l2.latency_far l1.latency", "clk clk clk",
     "L2 by ordinary loads: bandwidth by size, latency of the near and the far half", 4, probe_l2},
    {"sm", "shared.bandwidth shared.latency barrier.cta barrier.mbarrier rate.fma.fp32.fp32 rate.mufu",
     "B/clk/SM clk clk clk FLOP/clk/SM op/clk/SM", "Shared memory, barriers and arithmetic of one SM", 3,
     probe_sm},
    {"launch", "launch.gap_stream launch.gap_graph", "us us",
     "Kernel to kernel in a stream and in a graph; what a programmatic launch saves an idle kernel", 3, probe_launch},
};

}  // namespace

std::span<const Probe> probes() { return table; }

std::vector<const Probe*> probes_named(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        const auto same = [&](const Probe& p) { return p.name == name; };
        if (std::any_of(std::begin(table), std::end(table), same)) continue;
        std::string known;
        for (const Probe& p : table) known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
        throw RequestError(fmt::format("no probe \"{}\"; accepted: {}", name, known));
    }
    std::vector<const Probe*> chosen;
    for (const Probe& p : table)
        if (names.empty() || std::find(names.begin(), names.end(), p.name) != names.end())
            chosen.push_back(&p);
    return chosen;
}

}  // namespace rooftile
