#include "rooftile/fuse/hardware.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

constexpr double lanes_per_warp = 32;
using OpsPerCycle = Quantity<Dimension{.cycle = -1}>;

/// The first of `keys` that the machine knows; the last is named unknown where it knows none.
template <class Read>
double first_known(const std::vector<const char*>& keys, Read&& read, std::vector<std::string>& unknown,
                   std::string* found = nullptr) {
    for (const char* key : keys)
        if (const auto number = read(key)) {
            if (found) *found = key;
            return *number;
        }
    if (found) *found = keys.back();
    if (std::find(unknown.begin(), unknown.end(), keys.back()) == unknown.end())
        unknown.emplace_back(keys.back());
    return unknown_number;
}

template <class Q>
std::optional<double> value_of(const std::optional<Q>& number) {
    if (!number) return std::nullopt;
    if constexpr (std::is_same_v<Q, double>) return *number;
    else return number->value;
}

}  // namespace

FuseHardware fuse_hardware(const Machine& m, std::vector<std::string>& unknown) {
    const auto clock = m.number<Clock>("clock.boost");
    const auto count = [&](const char* key) {
        return first_known(
            {key}, [&](const char* k) { return m.count(k); }, unknown);
    };
    const auto bytes = [&](const char* key) {
        return first_known(
            {key}, [&](const char* k) { return value_of(m.number<Bytes>(k)); }, unknown);
    };
    const auto rate = [&](std::vector<const char*> keys, std::string* found = nullptr) {
        return first_known(
            keys, [&](const char* k) { return value_of(bandwidth(m, k, clock)); }, unknown, found);
    };
    const auto cycles = [&](std::vector<const char*> keys, std::string* found = nullptr) {
        return first_known(
            keys, [&](const char* k) { return value_of(latency_cycles(m, k, clock)); }, unknown, found);
    };
    FuseHardware hw{};
    hw.sms = count("sm.count");
    hw.clock_hz = first_known(
        {"clock.boost"}, [&](const char*) { return value_of(clock); }, unknown);
    // What was measured rather than the data sheet's number [M2].
    hw.read_bandwidth = rate({"dram.sustained_read", "dram.bandwidth"}, &hw.read_key);
    hw.write_bandwidth = rate({"dram.sustained_write", "dram.bandwidth"});
    hw.copy_bandwidth = rate({"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"});
    hw.l2_bandwidth = rate({"l2.bandwidth"});
    hw.l2_port = value_of(bytes_per_cycle_per_sm(m, "l2.port", clock)).value_or(unknown_number);
    hw.l2_all_bytes = bytes("l2.size");
    hw.l2_bytes = hw.l2_all_bytes / m.count("l2.partitions").value_or(1);
    hw.dram_latency = cycles({"dram.latency"});
    hw.l2_latency = cycles({"l2.latency"});
    hw.loaded_latency = cycles({"tma.latency_loaded", "dram.latency"}, &hw.loaded_latency_key);
    hw.fit = fuse_fit(m);
    hw.loaded_factor = hw.loaded_latency_key == "dram.latency" ? hw.fit.loaded_latency : 1;
    hw.launch_seconds = first_known(
        {"launch.gap_stream"}, [&](const char* k) { return value_of(m.number<Seconds>(k)); }, unknown);
    hw.issue_lanes = count("sm.partitions") * lanes_per_warp;
    hw.mufu_rate = value_of(m.number<OpsPerCycle>("rate.mufu", Per::sm)).value_or(unknown_number);
    hw.alu_rate = value_of(m.number<OpsPerCycle>("rate.alu", Per::sm)).value_or(unknown_number);
    hw.registers_per_sm = count("sm.registers");
    hw.registers_per_thread = count("sm.max_registers_per_thread");
    hw.threads_per_cta = count("sm.max_threads_per_cta");
    hw.threads_per_sm = lanes_per_warp * count("sm.max_warps");
    hw.ctas_per_sm = count("sm.max_ctas");
    hw.shared_per_cta = bytes("shared.per_cta");
    hw.shared_per_sm = bytes("shared.per_sm");
    hw.shared_reserved = value_of(m.number<Bytes>("shared.reserved_per_cta")).value_or(0);
    hw.l1_unified = value_of(m.number<Bytes>("l1.unified")).value_or(unknown_number);
    hw.carveout_step = value_of(m.number<Bytes>("shared.carveout_step")).value_or(unknown_number);
    const auto optional = [&](const char* key) {
        return value_of(latency_cycles(m, key, clock)).value_or(unknown_number);
    };
    hw.sm_bandwidth = value_of(m.number<BytesPerCycle>("dram.per_sm", Per::sm)).value_or(unknown_number);
    hw.stride_derate = value_of(m.number<Ratio>("dram.derate.stride")).value_or(unknown_number);
    hw.streams_derate = value_of(m.number<Ratio>("dram.derate.streams")).value_or(unknown_number);
    hw.drift_derate = value_of(m.number<Ratio>("dram.derate.drift")).value_or(unknown_number);
    hw.cta_start = optional("cta.start");
    hw.cta_interval = optional("cta.interval");
    hw.cluster_start = optional("cluster.start");
    hw.cluster_ctas =
        m.has("cluster") ? m.count("cluster.max").value_or(m.count("cluster.max_portable").value_or(1)) : 1;
    hw.cluster_barrier = value_of(latency_cycles(m, "barrier.cluster", clock)).value_or(unknown_number);
    hw.dsmem_latency = value_of(latency_cycles(m, "dsmem.latency", clock)).value_or(unknown_number);
    return hw;
}

double cluster_start_cycles(const FuseHardware& hw, double size) {
    // A doubling: the places of a whole cluster are free later than one CTA's.
    return max_known(hw.cluster_start, 0) * (1 + hw.fit.cluster_growth * (std::log2(size) - 1));
}

double l1_beside(const FuseHardware& hw, double shared_bytes) {
    constexpr double reserves = 4;
    const double unused = hw.shared_per_sm - shared_bytes - reserves * hw.shared_reserved;
    const double given = whole(max_known(unused, 0) / hw.carveout_step) * hw.carveout_step;
    return hw.l1_unified - hw.shared_per_sm + given;
}

double cluster_sms(const Machine& machine, int size, double ctas_per_sm) {
    const double all = machine.count("sm.count").value_or(unknown_number);
    if (size <= 1) return all;
    // What nobody measured is as the largest size below it that somebody did.
    constexpr int largest_key = 8;
    for (int known = std::min(size, largest_key); known > 1; known /= 2) {
        const auto sms = machine.count("cluster.sms_" + std::to_string(known));
        if (!sms) continue;
        if (!(ctas_per_sm > 1) || std::isnan(all)) return *sms;
        // SMs of a TPC: a GPC that is no whole number of clusters is by so many too large.
        constexpr double pair = 2;
        return all - (all - *sms) / pair * std::fmod(pair * ctas_per_sm, size) / ctas_per_sm;
    }
    return all;
}

}  // namespace rooftile
