#include "rooftile/gemm/hardware.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

namespace {

// What only the kernel of TMA, wgmma and clusters asks for: elsewhere nobody misses these numbers.
void read_wgmma_kernel(MachineReader& read, const Machine& machine, GemmHardware& hw) {
    hw.loaded_latency = read.known_cycles("tma.latency_loaded");
    hw.l2_loaded_latency = min_known(read.known_cycles("tma.latency_loaded_l2"), hw.loaded_latency);
    hw.latency_scatter = max_known(0, read.known_number<Ratio>("tma.latency_scatter"));
    hw.store_latency = read.known_cycles("tma.store_latency");
    hw.store_latency_loaded = max_known(read.known_cycles("tma.store_latency_loaded"), hw.store_latency);
    hw.step_floor = read.known_cycles("wgmma.step");
    hw.tile_turn = read.known_cycles("wgmma.turn");
    hw.pingpong_turn = min_known(hw.tile_turn, read.known_cycles("wgmma.turn_pingpong"));
    if (!machine.has("cluster")) return;
    constexpr std::pair<int, std::string_view> usable[] = {{2, "cluster.sms_2"},
                                                           {3, "cluster.sms_3"},
                                                           {4, "cluster.sms_4"},
                                                           {6, "cluster.sms_6"},
                                                           {8, "cluster.sms_8"}};
    for (const auto& [size, key] : usable) hw.cluster_sms[size] = machine.count(key).value_or(0);
    hw.sms_per_gpc = read.count("sm.per_gpc");
    hw.dsmem_bandwidth = read.of_sm("dsmem.bandwidth");
    hw.dsmem_latency = read.cycles("dsmem.latency");
    hw.cluster_barrier = read.cycles("barrier.cluster");
}

// What bounds DRAM beside its bandwidth, and what bounds the clock; the model goes on without.
void read_limits(const MachineReader& read, Type type, GemmHardware& hw) {
    hw.dram_per_sm = read.known_number<BytesPerCycle>("dram.per_sm", Per::sm);
    hw.dram_per_sm_pair = read.known_number<BytesPerCycle>("dram.per_sm_pair", Per::sm);
    hw.dram_per_sm_alone =
        max_known(read.known_number<BytesPerCycle>("dram.per_sm_alone", Per::sm), hw.dram_per_sm);
    hw.sm_skew = max_known(0, read.known_number<Ratio>("sm.skew"));
    hw.l2_coalesced = max_known(1, read.known_number<Ratio>("l2.coalesced"));
    hw.l2_multicast = max_known(1, read.known_number<Ratio>("l2.multicast"));
    hw.top_hz =
        read.known_number<Clock>(read.first_of({"clock.tensor", "clock.boost"}));
    hw.sustained_watts = read.known_number<Watts>("power.sustained");
    hw.static_watts = read.known_number<Watts>("power.static");
    if (hw.sustained_watts <= hw.static_watts)
        throw RequestError(fmt::format(
            "power.sustained = {:g} W must exceed power.static = {:g} W: nothing is left for work",
            hw.sustained_watts, hw.static_watts));
    hw.flop_joules = read.known_number<JoulesPerFlop>("energy.flop." + std::string(name_of(type)));
    hw.fill_joules = read.known_number<JoulesPerByte>("energy.fill");
    hw.shared_read_joules = max_known(0, read.known_number<JoulesPerByte>("energy.shared_read"));
    hw.dram_joules = read.known_number<JoulesPerByte>("energy.dram");
    hw.energy_exponent = read.known_number<Ratio>("energy.exponent");
}

}  // namespace

GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown) {
    const auto named = matrix_clock(machine, name_of(type));
    const auto clock = named ? std::optional(named->clock) : std::nullopt;
    MachineReader read(machine, clock, unknown);
    const std::string rate = rate_key(family, name_of(type), "fp32");
    // Sustained bandwidth, never the nominal one, where somebody measured it [M2].
    const std::string_view dram = read.first_of({"dram.sustained_read", "dram.bandwidth"});

    GemmHardware hw{};
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.needed("clock.boost", clock);
    hw.flops_per_cycle = read.needed(rate, flops_per_cycle_per_sm(machine, rate, clock));
    hw.peak_flops = read.known(peak_flops(machine, family, name_of(type), "fp32", clock));
    hw.shared_bandwidth = read.of_sm("shared.bandwidth");
    hw.l2_port = read.share_of_sm("l2.port");
    hw.l2_share = read.share_of_sm("l2.bandwidth");
    hw.dram_share = read.share_of_sm(dram);
    hw.dram_bandwidth = read.bandwidth(dram);
    const double l2 = read.bytes("l2.size");
    const double parts = read.needed("l2.partitions", machine.count("l2.partitions"), 1);
    // Both halves of a split L2 hold a copy of what SMs of both sides read (hardware notes on A100 and H100).
    hw.l2_bytes = l2 / parts;
    hw.l2_parts = parts;
    hw.shared_per_cta = read.bytes("shared.per_cta");
    hw.shared_per_sm = read.bytes("shared.per_sm");
    hw.shared_reserved =
        read.needed("shared.reserved_per_cta", machine.number<Bytes>("shared.reserved_per_cta"), 0);
    hw.shared_unit =
        read.needed("shared.allocation_unit", machine.number<Bytes>("shared.allocation_unit"), 1);
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.count("sm.max_registers_per_thread");
    hw.register_unit =
        read.needed("sm.register_allocation_unit", machine.count("sm.register_allocation_unit"), 1);
    hw.on_chip_bytes = l2 + hw.sms * (hw.shared_per_sm + 4 * hw.registers_per_sm);
    hw.dram_latency = read.cycles("dram.latency");
    hw.l2_latency = read.cycles("l2.latency");
    const bool by_tma = machine.has("tma") && family != "mma_sync";  // whose kernels copy by cp.async
    hw.tma_latency =
        by_tma ? read.needed("tma.latency_extra", latency_cycles(machine, "tma.latency_extra", clock), 0) : 0;
    hw.launch_seconds = read.seconds("launch.gap_stream");
    hw.threads_per_cta = read.count("sm.max_threads_per_cta");
    hw.threads_per_sm = 32 * read.count("sm.max_warps");
    hw.ctas_per_sm = read.count("sm.max_ctas");
    hw.async_copy = !machine.lacks("cp_async");
    hw.cluster_ctas =
        machine.has("cluster") ? read.known(machine.count("cluster.max_portable")) : 1;
    hw.sms_per_gpc = hw.dsmem_bandwidth = hw.dsmem_latency = hw.cluster_barrier = unknown_number;
    if (family == "wgmma") read_wgmma_kernel(read, machine, hw);
    if (family == "mma_sync") hw.mma_overlap_exponent = read.known_number<Ratio>("mma_sync.overlap_exponent");
    read_limits(read, type, hw);
    return hw;
}

}  // namespace rooftile
