#include "rooftile/gemm/hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

namespace {

// Turns optionals into numbers, and notes the keys that are missing.
class Reader {
  public:
    Reader(const Machine& machine, std::vector<std::string>& unknown)
        : machine_(machine), unknown_(unknown) {}

    double count(std::string_view key) { return known(key, machine_.count(key)); }
    double bytes(std::string_view key) { return known(key, machine_.number<Bytes>(key)); }
    template <class Q>
    double per_sm(std::string_view key) {
        return known(key, machine_.number<Q>(key, Per::sm));
    }

    template <class Q>
    double known(std::string_view key, const std::optional<Q>& number) {
        if (number) {
            if constexpr (std::is_same_v<Q, double>) return *number;
            else return number->value;
        }
        // A number can be known and still not be convertible: then what is missing is the clock or the SMs.
        if (!machine_.find(key)) note(key);
        return std::nan("");
    }
    /// The same where a formula can go on with `value`; the key is named all the same.
    template <class Q>
    double otherwise(std::string_view key, const std::optional<Q>& number, double value) {
        const double result = known(key, number);
        return std::isnan(result) ? value : result;
    }
    void note(std::string_view key) {
        if (std::find(unknown_.begin(), unknown_.end(), key) == unknown_.end()) unknown_.emplace_back(key);
    }

  private:
    const Machine& machine_;
    std::vector<std::string>& unknown_;
};

template <class Q>
double if_known(const std::optional<Q>& number) {
    return number ? number->value : unknown_number;
}

// What only the kernel of TMA, wgmma and clusters asks for: elsewhere nobody misses these numbers.
void read_wgmma_kernel(Reader& read, const Machine& machine, std::optional<Clock> clock, GemmHardware& hw) {
    const auto cycles = [&](std::string_view key) { return latency_cycles(machine, key, clock); };
    hw.loaded_latency = if_known(cycles("tma.latency_loaded"));
    hw.l2_loaded_latency = min_known(if_known(cycles("tma.latency_loaded_l2")), hw.loaded_latency);
    hw.latency_scatter = max_known(0, if_known(machine.number<Ratio>("tma.latency_scatter")));
    hw.store_latency = if_known(cycles("tma.store_latency"));
    hw.store_latency_loaded = max_known(if_known(cycles("tma.store_latency_loaded")), hw.store_latency);
    hw.step_floor = if_known(cycles("wgmma.step"));
    hw.tile_turn = if_known(cycles("wgmma.turn"));
    hw.pingpong_turn = min_known(hw.tile_turn, if_known(cycles("wgmma.turn_pingpong")));
    if (!machine.has("cluster")) return;
    constexpr std::pair<int, std::string_view> usable[] = {{2, "cluster.sms_2"},
                                                           {3, "cluster.sms_3"},
                                                           {4, "cluster.sms_4"},
                                                           {6, "cluster.sms_6"},
                                                           {8, "cluster.sms_8"}};
    for (const auto& [size, key] : usable) hw.cluster_sms[size] = machine.count(key).value_or(0);
    hw.sms_per_gpc = read.count("sm.per_gpc");
    hw.dsmem_bandwidth = read.per_sm<BytesPerCycle>("dsmem.bandwidth");
    hw.dsmem_latency = read.known("dsmem.latency", cycles("dsmem.latency"));
    hw.cluster_barrier = read.known("barrier.cluster", cycles("barrier.cluster"));
}

// What bounds DRAM beside its bandwidth, and what bounds the clock; the model goes on without.
void read_limits(const Machine& machine, Type type, GemmHardware& hw) {
    hw.dram_per_sm = if_known(machine.number<BytesPerCycle>("dram.per_sm", Per::sm));
    hw.dram_per_sm_pair = if_known(machine.number<BytesPerCycle>("dram.per_sm_pair", Per::sm));
    hw.dram_per_sm_alone =
        max_known(if_known(machine.number<BytesPerCycle>("dram.per_sm_alone", Per::sm)), hw.dram_per_sm);
    hw.sm_skew = max_known(0, if_known(machine.number<Ratio>("sm.skew")));
    hw.l2_coalesced = max_known(1, if_known(machine.number<Ratio>("l2.coalesced")));
    hw.l2_multicast = max_known(1, if_known(machine.number<Ratio>("l2.multicast")));
    hw.top_hz =
        if_known(machine.number<Clock>(machine.find("clock.tensor") ? "clock.tensor" : "clock.boost"));
    hw.sustained_watts = if_known(machine.number<Watts>("power.sustained"));
    hw.static_watts = if_known(machine.number<Watts>("power.static"));
    if (hw.sustained_watts <= hw.static_watts)
        throw RequestError(fmt::format(
            "power.sustained = {:g} W must exceed power.static = {:g} W: nothing is left for work",
            hw.sustained_watts, hw.static_watts));
    hw.flop_joules = if_known(machine.number<JoulesPerFlop>("energy.flop." + std::string(name_of(type))));
    hw.fill_joules = if_known(machine.number<JoulesPerByte>("energy.fill"));
    hw.shared_read_joules = max_known(0, if_known(machine.number<JoulesPerByte>("energy.shared_read")));
    hw.dram_joules = if_known(machine.number<JoulesPerByte>("energy.dram"));
    hw.energy_exponent = if_known(machine.number<Ratio>("energy.exponent"));
}

}  // namespace

GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown) {
    Reader read(machine, unknown);
    const auto named = matrix_clock(machine, name_of(type));
    const auto clock = named ? std::optional(named->clock) : std::nullopt;
    const std::string rate = rate_key(family, name_of(type), "fp32");
    // Sustained bandwidth, never the nominal one, where somebody measured it [M2].
    const char* dram = machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth";

    GemmHardware hw{};
    hw.sms = read.count("sm.count");
    hw.clock_hz = read.known("clock.boost", clock);
    hw.flops_per_cycle = read.known(rate, flops_per_cycle_per_sm(machine, rate, clock));
    const auto peak = peak_flops(machine, family, name_of(type), "fp32", clock);
    hw.peak_flops = peak ? peak->value : std::nan("");
    hw.shared_bandwidth = read.per_sm<BytesPerCycle>("shared.bandwidth");
    hw.l2_port = read.known("l2.port", bytes_per_cycle_per_sm(machine, "l2.port", clock));
    hw.l2_share = read.known("l2.bandwidth", bytes_per_cycle_per_sm(machine, "l2.bandwidth", clock));
    hw.dram_share = read.known(dram, bytes_per_cycle_per_sm(machine, dram, clock));
    hw.dram_bandwidth = read.known(dram, bandwidth(machine, dram, clock));
    const double l2 = read.bytes("l2.size");
    const double parts = read.otherwise("l2.partitions", machine.count("l2.partitions"), 1);
    // Both halves of a split L2 hold a copy of what SMs of both sides read (hardware notes on A100 and H100).
    hw.l2_bytes = l2 / parts;
    hw.l2_parts = parts;
    hw.shared_per_cta = read.bytes("shared.per_cta");
    hw.shared_per_sm = read.bytes("shared.per_sm");
    hw.shared_reserved =
        read.otherwise("shared.reserved_per_cta", machine.number<Bytes>("shared.reserved_per_cta"), 0);
    hw.shared_unit =
        read.otherwise("shared.allocation_unit", machine.number<Bytes>("shared.allocation_unit"), 1);
    hw.registers_per_sm = read.count("sm.registers");
    hw.registers_per_thread = read.count("sm.max_registers_per_thread");
    hw.register_unit =
        read.otherwise("sm.register_allocation_unit", machine.count("sm.register_allocation_unit"), 1);
    hw.on_chip_bytes = l2 + hw.sms * (hw.shared_per_sm + 4 * hw.registers_per_sm);
    hw.dram_latency = read.known("dram.latency", latency_cycles(machine, "dram.latency", clock));
    hw.l2_latency = read.known("l2.latency", latency_cycles(machine, "l2.latency", clock));
    const bool by_tma = machine.has("tma") && family != "mma_sync";  // whose kernels copy by cp.async
    hw.tma_latency =
        by_tma ? read.otherwise("tma.latency_extra", latency_cycles(machine, "tma.latency_extra", clock), 0) : 0;
    hw.launch_seconds = read.known("launch.gap_stream", machine.number<Seconds>("launch.gap_stream"));
    hw.threads_per_cta = read.count("sm.max_threads_per_cta");
    hw.threads_per_sm = 32 * read.count("sm.max_warps");
    hw.ctas_per_sm = read.count("sm.max_ctas");
    hw.async_copy = !machine.lacks("cp_async");
    hw.cluster_ctas =
        machine.has("cluster") ? machine.count("cluster.max_portable").value_or(std::nan("")) : 1;
    hw.sms_per_gpc = hw.dsmem_bandwidth = hw.dsmem_latency = hw.cluster_barrier = unknown_number;
    if (family == "wgmma") read_wgmma_kernel(read, machine, clock, hw);
    if (family == "mma_sync") hw.mma_overlap_exponent = if_known(machine.number<Ratio>("mma_sync.overlap_exponent"));
    read_limits(machine, type, hw);
    return hw;
}

}  // namespace rooftile
