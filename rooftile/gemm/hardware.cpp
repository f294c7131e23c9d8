#include "rooftile/gemm/hardware.hpp"

#include <iterator>

#include "rooftile/tiled/hardware.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

namespace {

// What only the kernel of TMA, wgmma and clusters asks for: elsewhere nobody misses these numbers.
void read_wgmma_kernel(const MachineReader& read, const MachineReader& optional, bool clusters, GemmHardware& hw) {
    hw.edges_repeat = true;
    hw.loaded_latency = optional.cycles("tma.latency_loaded");
    hw.l2_loaded_latency = min_known(optional.cycles("tma.latency_loaded_l2"), hw.loaded_latency);
    constexpr std::pair<std::string_view, std::string_view> off_line[] = {{"tma.off_line_16", "tma.off_line_shared_16"},
                                                                         {"tma.off_line_32", "tma.off_line_shared_32"},
                                                                         {"tma.off_line_64", "tma.off_line_shared_64"}};
    for (std::size_t i = 0; i < std::size(off_line); ++i)
        hw.off_line[i] = {optional.number<Ratio>(off_line[i].first), optional.number<Ratio>(off_line[i].second)};
    hw.store_share = optional.bandwidth_per_sm("tma.store");
    hw.store_amid_sector = min_known(optional.bandwidth_per_sm("tma.store_amid_sector"), hw.store_share);
    hw.store_by_element = optional.bandwidth_per_sm("store.element");
    hw.store_by_element_turned = optional.bandwidth_per_sm("store.element_turned");
    hw.store_latency = optional.cycles("tma.store_latency");
    hw.step_floor = optional.cycles("wgmma.step");
    hw.tile_turn = optional.cycles("wgmma.turn");
    hw.wgmma_latency = optional.cycles("wgmma.latency");
    if (!clusters) return;
    constexpr std::pair<int, std::string_view> usable[] = {{2, "cluster.sms_2"},
                                                           {3, "cluster.sms_3"},
                                                           {4, "cluster.sms_4"},
                                                           {6, "cluster.sms_6"},
                                                           {8, "cluster.sms_8"}};
    for (const auto& [size, key] : usable) hw.cluster_sms[size] = known_or(optional.count(key), 0);
    hw.sms_per_gpc = read.count("sm.per_gpc");
    hw.dsmem_bandwidth = read.number<BytesPerCycle>("dsmem.bandwidth", Per::sm);
    hw.dsmem_latency = read.cycles("dsmem.latency");
    hw.cluster_barrier = read.cycles("barrier.cluster");
}

// What bounds DRAM beside its bandwidth; the model goes on without.
void read_limits(const MachineReader& optional, GemmHardware& hw) {
    hw.dram_per_sm = optional.number<BytesPerCycle>("dram.per_sm", Per::sm);
    hw.dram_per_sm_alone =
        max_known(optional.number<BytesPerCycle>("dram.per_sm_alone", Per::sm), hw.dram_per_sm);
    hw.sm_skew = max_known(0, optional.number<Ratio>("sm.skew"));
    hw.l2_coalesced = max_known(1, optional.number<Ratio>("l2.coalesced"));
    hw.l2_multicast = max_known(1, optional.number<Ratio>("l2.multicast"));
}

}  // namespace

GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown, std::optional<Clock> clock) {
    std::optional<Clock> sustained = clock;
    if (!clock) {
        clock = fitted_clock(machine, rate_name_of(type));
        if (const auto named = matrix_clock(machine, rate_name_of(type))) sustained = named->clock;
    }
    const MachineReader read(machine, clock, &unknown), optional(machine, clock);
    const std::string_view input = family == "fma" ? "fp32" : rate_name_of(type);
    const std::string rate = rate_key(family, input, "fp32");
    // Sustained bandwidth, never the nominal one, where somebody measured it [M2].
    const std::string_view dram = read.first_known({"dram.sustained_read", "dram.bandwidth"});

    GemmHardware hw{};
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    static_cast<MatrixPower&>(hw) = matrix_power(optional, rate_name_of(type), sustained);
    hw.flops_per_cycle = read.flops_per_cycle(rate);
    if (family == "fma") hw.issue_slots = read.count("sm.partitions");
    auto peak = peak_flops(machine, family, input, "fp32", sustained);
    // Of who states the GPU's peak and no instruction's.
    if (!peak) peak = peak_flops(machine, "generic", input, "fp32", sustained);
    hw.peak_flops = peak ? peak->value : unknown_number;
    hw.shared_bandwidth = read.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = read.bandwidth_per_sm("l2.port");
    hw.l2_share = read.bandwidth_per_sm("l2.bandwidth");
    hw.dram_share = read.bandwidth_per_sm(dram);
    hw.dram_bandwidth = read.bandwidth(dram);
    hw.copy_bandwidth = optional.bandwidth(
        optional.first_known({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}));
    const double l2 = read.number<Bytes>("l2.size");
    const double parts = known_or(read.count("l2.partitions"), 1);
    // Both halves of a split L2 hold a copy of what SMs of both sides read (hardware notes on A100 and H100).
    hw.l2_bytes = l2 / parts;
    hw.l2_parts = parts;
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.shared_per_sm = read.number<Bytes>("shared.per_sm");
    hw.shared_reserved = known_or(read.number<Bytes>("shared.reserved_per_cta"), 0);
    hw.shared_unit = known_or(read.number<Bytes>("shared.allocation_unit"), 1);
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.registers_per_thread();
    hw.register_unit = known_or(read.count("sm.register_allocation_unit"), 1);
    hw.on_chip_bytes = l2 + hw.sms * (hw.shared_per_sm + 4 * hw.registers_per_sm);
    hw.dram_latency = read.cycles("dram.latency");
    hw.l2_latency = read.cycles("l2.latency");
    const bool by_tma = machine.has("tma") && family != "mma_sync";  // whose kernels copy by cp.async
    hw.tma_latency = by_tma ? known_or(read.cycles("tma.latency_extra"), 0) : 0;
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.issue_lanes = warp_threads * optional.count("sm.partitions");
    hw.threads_per_cta = read.threads_per_cta();
    hw.threads_per_sm = warp_threads * read.count("sm.max_warps");
    hw.ctas_per_sm = read.count("sm.max_ctas");
    hw.async_copy = !machine.lacks("cp_async");
    hw.cluster_ctas = machine.has("cluster") ? optional.count("cluster.max_portable") : 1;
    hw.sms_per_gpc = hw.dsmem_bandwidth = hw.dsmem_latency = hw.cluster_barrier = unknown_number;
    if (family == "wgmma") hw.programmatic_saving = optional.number<Seconds>("launch.programmatic_saving");
    if (family == "wgmma") read_wgmma_kernel(read, optional, machine.has("cluster"), hw);
    if (family == "wgmma") hw.dram_overlap_exponent = optional.number<Ratio>("wgmma.overlap_exponent");
    if (family == "mma_sync") hw.mma_overlap_exponent = optional.number<Ratio>("mma_sync.overlap_exponent");
    read_limits(optional, hw);
    return hw;
}

}  // namespace rooftile
