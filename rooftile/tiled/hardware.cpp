#include "rooftile/tiled/hardware.hpp"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "rooftile/core/warp.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"

namespace rooftile {

std::optional<Clock> matrix_or_boost_clock(const Machine& machine, std::string_view input) {
    if (const auto sustained = matrix_clock(machine, input)) return sustained->clock;
    return machine.number<Clock>("clock.boost");
}

std::string missing_matrix_type(const Machine& machine, std::string_view input) {
    if (!machine.lacks(input)) return {};
    return fmt::format("{} has no {} matrix instruction; take {}", machine.id, input, input == "fp16" ? "bf16" : "fp16");
}

namespace {

MatrixPower matrix_power(const MachineReader& read, std::string_view input, std::optional<Clock> sustained) {
    MatrixPower power;
    power.sustained_hz = sustained ? sustained->value : unknown_number;
    power.top_hz = read.number<Clock>(read.first_known({"clock.tensor", "clock.boost"}));
    power.sustained_watts = read.number<Watts>("power.sustained");
    power.static_watts = read.number<Watts>("power.static");
    if (power.sustained_watts <= power.static_watts)
        throw RequestError(fmt::format("power.sustained = {:g} W must exceed power.static = {:g} W: nothing is left for work",
                                       power.sustained_watts, power.static_watts));
    power.flop_joules = read.number<JoulesPerFlop>("energy.flop." + std::string(input));
    power.fill_joules = read.number<JoulesPerByte>("energy.fill");
    power.shared_read_joules = max_known(0, read.number<JoulesPerByte>("energy.shared_read"));
    power.dram_joules = read.number<JoulesPerByte>("energy.dram");
    power.energy_exponent = read.number<Ratio>("energy.exponent");
    return power;
}

// What only kernels of TMA, wgmma and clusters take.
void read_wgmma(const MachineReader& read, bool clusters, MatrixHardware& hw) {
    hw.edges_repeat = true;
    hw.loaded_latency = read.cycles("tma.latency_loaded");
    hw.l2_loaded_latency = min_known(read.cycles("tma.latency_loaded_l2"), hw.loaded_latency);
    constexpr std::pair<std::string_view, std::string_view> off_line[] = {{"tma.off_line_16", "tma.off_line_shared_16"},
                                                                         {"tma.off_line_32", "tma.off_line_shared_32"},
                                                                         {"tma.off_line_64", "tma.off_line_shared_64"}};
    for (std::size_t i = 0; i < std::size(off_line); ++i)
        hw.off_line[i] = {read.number<Ratio>(off_line[i].first), read.number<Ratio>(off_line[i].second)};
    hw.image_inside = read.number<Ratio>("tma.image"), hw.image_outside = read.number<Ratio>("tma.image_outside");
    hw.image_outside_multicast = read.number<Ratio>("tma.image_outside_multicast"), hw.image_clustered = max_known(1, read.number<Ratio>("tma.image_clustered"));
    hw.store_share = read.bandwidth_per_sm("tma.store");
    hw.store_amid_sector = min_known(read.bandwidth_per_sm("tma.store_amid_sector"), hw.store_share);
    // Both write whole sectors amid a row and parts of one at its ends; a machine that nobody probed for the one has the other's number.
    hw.store_by_rows = min_known(read.bandwidth_per_sm(read.first_known({"store.rows", "tma.store_amid_sector"})), hw.store_share);
    hw.store_by_element = read.bandwidth_per_sm("store.element");
    hw.store_by_element_turned = read.bandwidth_per_sm("store.element_turned");
    hw.store_latency = read.cycles("tma.store_latency");
    hw.store_rows_turn = read.cycles("store.rows_turn");
    hw.step_floor = read.cycles("wgmma.step");
    hw.tile_turn = read.cycles("wgmma.turn");
    hw.wgmma_latency = read.cycles("wgmma.latency");
    hw.dram_overlap_exponent = read.number<Ratio>("wgmma.overlap_exponent");
    if (!clusters) return;
    constexpr std::pair<int, std::string_view> usable[] = {{2, "cluster.sms_2"},
                                                           {3, "cluster.sms_3"},
                                                           {4, "cluster.sms_4"},
                                                           {6, "cluster.sms_6"},
                                                           {8, "cluster.sms_8"}};
    for (const auto& [size, key] : usable) hw.cluster_sms[size] = known_or(read.count(key), 0);
    hw.sms_per_gpc = read.count("sm.per_gpc");
    hw.dsmem_bandwidth = read.number<BytesPerCycle>("dsmem.bandwidth", Per::sm);
    hw.dsmem_latency = read.cycles("dsmem.latency");
    hw.cluster_barrier = read.cycles("barrier.cluster");
}

}  // namespace

MatrixHardware matrix_hardware(const Machine& machine, MatrixUse use, std::vector<std::string>& unknown) {
    using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;
    const MachineReader read(machine, use.clock);
    if (use.family.empty()) {
        if (machine.has("wgmma")) use.family = "wgmma";
        else if (const auto fastest = fastest_instruction(machine, use.input, "fp32")) use.family = fastest->family;
    }
    const std::string_view input = use.family == "fma" ? "fp32" : use.input;
    const std::string rate = rate_key(use.family.empty() ? "mma_sync" : use.family, input, "fp32");
    // Sustained bandwidth, never the nominal one, where somebody measured it [M2].
    const std::string_view dram = read.first_known({"dram.sustained_read", "dram.bandwidth"});

    const MachineReader missed(machine, use.clock, &unknown);
    for (const std::string_view key : use.needs)
        if (key == "clock.boost") missed.clock();
        else missed.note(key == "rate" ? rate : key == "dram.bandwidth" ? dram : key);

    MatrixHardware hw;
    static_cast<MatrixPower&>(hw) = matrix_power(read, use.input, use.sustained);
    hw.family = use.family;
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.clock();
    hw.flops_per_cycle = read.flops_per_cycle(rate);
    hw.issue_lanes = warp_threads * read.count("sm.partitions");
    if (hw.family == "fma") hw.issue_slots = read.count("sm.partitions");
    hw.exponentials_per_cycle = read.number<OpsPerCycle>("rate.mufu", Per::sm);
    constexpr double flops_of_fma = 2;
    hw.arithmetic_per_cycle = read.flops_per_cycle("rate.fma.fp32.fp32") / flops_of_fma;
    hw.comparisons_per_cycle = read.number<OpsPerCycle>("rate.alu", Per::sm);
    std::optional<FlopRate> peak;
    if (!hw.family.empty()) peak = peak_flops(machine, hw.family, input, "fp32", use.sustained);
    // Of who states the GPU's peak and no instruction's.
    if (!peak) peak = peak_flops(machine, "generic", input, "fp32", use.sustained);
    hw.peak_flops = peak ? peak->value : unknown_number;
    hw.shared_bandwidth = read.number<BytesPerCycle>("shared.bandwidth", Per::sm);
    hw.l2_port = read.bandwidth_per_sm("l2.port");
    hw.l2_share = read.bandwidth_per_sm("l2.bandwidth");
    hw.l2_coalesced = max_known(1, read.number<Ratio>("l2.coalesced"));
    hw.l2_multicast = max_known(1, read.number<Ratio>("l2.multicast"));
    const double l2 = read.number<Bytes>("l2.size");
    hw.l2_parts = known_or(read.count("l2.partitions"), 1);
    // Both halves of a split L2 hold a copy of what SMs of both sides read (hardware notes on A100 and H100).
    hw.l2_bytes = l2 / hw.l2_parts;
    hw.dram_share = read.bandwidth_per_sm(dram);
    hw.dram_bandwidth = read.bandwidth(dram);
    hw.copy_bandwidth = read.bandwidth(read.first_known({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}));
    hw.dram_per_sm = read.number<BytesPerCycle>("dram.per_sm", Per::sm);
    hw.shared_per_cta = read.number<Bytes>("shared.per_cta");
    hw.shared_per_sm = read.number<Bytes>("shared.per_sm");
    hw.shared_reserved = known_or(read.number<Bytes>("shared.reserved_per_cta"), 0);
    hw.shared_unit = known_or(read.number<Bytes>("shared.allocation_unit"), 1);
    hw.async_copy = !machine.lacks("cp_async");
    hw.moves_registers = machine.has("setmaxnreg");
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.registers_per_thread();
    hw.register_unit = known_or(read.count("sm.register_allocation_unit"), 1);
    hw.on_chip_bytes = l2 + hw.sms * (hw.shared_per_sm + 4 * hw.registers_per_sm);
    hw.threads_per_cta = read.threads_per_cta();
    hw.threads_per_sm = warp_threads * read.count("sm.max_warps");
    hw.ctas_per_sm = read.count("sm.max_ctas");
    hw.dram_latency = read.cycles("dram.latency");
    hw.l2_latency = read.cycles("l2.latency");
    const bool by_tma = machine.has("tma") && hw.family != "mma_sync";  // whose kernels copy by cp.async
    // Probed with TMA. An H200's SM that copied by cp.async took no more while 82 others were idle (docs/facts.md 382).
    hw.dram_per_sm_alone = by_tma ? max_known(read.number<BytesPerCycle>("dram.per_sm_alone", Per::sm), hw.dram_per_sm) : hw.dram_per_sm;
    hw.tma_latency = by_tma ? known_or(read.cycles("tma.latency_extra"), 0) : 0;
    hw.load_latency = known_or(read.cycles("tma.latency_loaded_l2"), hw.few_loads_latency());
    hw.load_in_seconds = read.in_seconds("tma.latency_loaded_l2");
    hw.launch_seconds = read.number<Seconds>("launch.gap_stream");
    hw.programmatic_saving = read.number<Seconds>("launch.programmatic_saving");
    hw.sm_skew = max_known(0, read.number<Ratio>("sm.skew"));
    hw.cluster_ctas = machine.has("cluster") ? read.count("cluster.max_portable") : 1;
    if (hw.family == "wgmma") read_wgmma(read, machine.has("cluster"), hw);
    hw.quantised_end = read.cycles("quantised.end"), hw.quantised_row = read.cycles("quantised.row");
    hw.quantised_tile = read.cycles("quantised.tile"), hw.quantised_tile_row = read.cycles("quantised.tile_row");
    if (hw.family == "mma_sync") {
        hw.gather_start = read.cycles("gather.start"), hw.gather_step = read.cycles("gather.step");
        hw.mma_overlap_exponent = read.number<Ratio>("mma_sync.overlap_exponent");
        hw.few_step = read.cycles("few.step");
        hw.few_word = read.cycles("few.word");
        hw.few_start = read.cycles("few.start");
    }
    return hw;
}

}  // namespace rooftile
