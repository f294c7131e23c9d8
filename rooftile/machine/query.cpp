#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

std::optional<double> sm_count(const Machine& machine) { return machine.count("sm.count"); }

// A fact of one SM times the number of SMs, or the GPU's fact as it is.
template <class Q>
std::optional<Q> whole_gpu(const Machine& machine, std::string_view key) {
    if (auto whole = machine.number<Q>(key, Per::gpu)) return whole;
    const auto one = machine.number<Q>(key, Per::sm);
    const auto sms = sm_count(machine);
    if (!one || !sms) return std::nullopt;
    return *one * *sms;
}

}  // namespace

std::optional<Cycles> latency_cycles(const Machine& machine, std::string_view key,
                                     std::optional<Clock> clock) {
    if (auto cycles = machine.number<Cycles>(key)) return cycles;
    const auto seconds = machine.number<Seconds>(key);
    if (!seconds || !clock) return std::nullopt;
    return *seconds * *clock;
}

std::optional<Seconds> latency_seconds(const Machine& machine, std::string_view key,
                                       std::optional<Clock> clock) {
    if (auto seconds = machine.number<Seconds>(key)) return seconds;
    const auto cycles = machine.number<Cycles>(key);
    if (!cycles || !clock) return std::nullopt;
    return *cycles / *clock;
}

std::optional<Bandwidth> bandwidth(const Machine& machine, std::string_view key, std::optional<Clock> clock) {
    if (auto per_second = whole_gpu<Bandwidth>(machine, key)) return per_second;
    const auto per_cycle = whole_gpu<BytesPerCycle>(machine, key);
    if (!per_cycle || !clock) return std::nullopt;
    return *per_cycle * *clock;
}

std::optional<BytesPerCycle> bytes_per_cycle(const Machine& machine, std::string_view key,
                                             std::optional<Clock> clock) {
    if (auto per_cycle = whole_gpu<BytesPerCycle>(machine, key)) return per_cycle;
    const auto per_second = whole_gpu<Bandwidth>(machine, key);
    if (!per_second || !clock) return std::nullopt;
    return *per_second / *clock;
}

std::optional<BytesPerCycle> bytes_per_cycle_per_sm(const Machine& machine, std::string_view key,
                                                    std::optional<Clock> clock) {
    if (auto one = machine.number<BytesPerCycle>(key, Per::sm)) return one;
    if (auto one = machine.number<Bandwidth>(key, Per::sm); one && clock) return *one / *clock;
    const auto whole = bytes_per_cycle(machine, key, clock);
    const auto sms = sm_count(machine);
    if (!whole || !sms) return std::nullopt;
    return *whole / *sms;
}

std::optional<BytesPerCycle> l2_bandwidth(const Machine& machine, std::optional<Clock> clock) {
    return bytes_per_cycle(machine, "l2.bandwidth", clock);
}

std::optional<Bandwidth> dram_bandwidth(const Machine& machine, std::optional<Clock> clock) {
    return bandwidth(machine, "dram.bandwidth", clock);
}

std::string rate_key(std::string_view family, std::string_view input, std::string_view accumulator) {
    return std::string("rate.").append(family).append(".").append(input).append(".").append(accumulator);
}

std::string peak_key(std::string_view family, std::string_view input, std::string_view accumulator) {
    return std::string("peak.").append(family).append(".").append(input).append(".").append(accumulator);
}

std::optional<FlopsPerCycle> flops_per_cycle_per_sm(const Machine& machine, std::string_view rate,
                                                    std::optional<Clock> clock) {
    if (auto one = machine.number<FlopsPerCycle>(rate, Per::sm)) return one;
    const auto whole = machine.number<FlopRate>(rate);
    const auto sms = sm_count(machine);
    if (!whole || !sms || !clock) return std::nullopt;
    return *whole / *clock / *sms;
}

std::optional<FlopRate> peak_flops(const Machine& machine, std::string_view family, std::string_view input,
                                   std::string_view accumulator, std::optional<Clock> clock) {
    if (auto stated = machine.number<FlopRate>(peak_key(family, input, accumulator))) return stated;
    const std::string rate = rate_key(family, input, accumulator);
    if (auto whole = machine.number<FlopRate>(rate)) return whole;
    const auto whole = whole_gpu<FlopsPerCycle>(machine, rate);
    if (!whole || !clock) return std::nullopt;
    return *whole * *clock;
}

std::optional<NamedClock> matrix_clock(const Machine& machine, std::string_view input) {
    for (const std::string& key :
         {"clock.sustained." + std::string(input), std::string("clock.tensor"), std::string("clock.boost")})
        if (const auto clock = machine.number<Clock>(key)) return NamedClock{*clock, key};
    return std::nullopt;
}

}  // namespace rooftile
