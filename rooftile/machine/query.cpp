#include "rooftile/machine/query.hpp"

#include "rooftile/machine/keys.hpp"

namespace rooftile {
namespace {

std::optional<double> sm_count(const Machine& machine) { return machine.count("sm.count"); }

// A fact of one SM times the number of SMs, or the GPU's fact as it is.
template <class Q>
std::optional<Q> whole_gpu(const Machine& machine, const Fact& fact) {
    if (const auto one = fact.as<Q>(Per::sm))
        if (const auto sms = sm_count(machine)) return *one * *sms;
    return fact.as<Q>();
}

std::optional<BytesPerCycle> bytes_per_cycle(const Machine& machine, const Fact& fact,
                                             std::optional<Clock> clock) {
    if (const auto per_cycle = whole_gpu<BytesPerCycle>(machine, fact)) return per_cycle;
    const auto per_second = whole_gpu<Bandwidth>(machine, fact);
    if (!per_second || !clock) return std::nullopt;
    return *per_second / *clock;
}

}  // namespace

std::optional<Cycles> latency_cycles(const Machine& machine, std::string_view key,
                                     std::optional<Clock> clock) {
    const Fact* fact = machine.find(key);
    if (!fact) return std::nullopt;
    const auto seconds = fact->as<Seconds>();
    return seconds && clock ? *seconds * *clock : fact->as<Cycles>();
}

std::optional<Bandwidth> bandwidth(const Machine& machine, std::string_view key, std::optional<Clock> clock) {
    const Fact* fact = machine.find(key);
    if (!fact) return std::nullopt;
    const auto per_cycle = whole_gpu<BytesPerCycle>(machine, *fact);
    return per_cycle && clock ? *per_cycle * *clock : whole_gpu<Bandwidth>(machine, *fact);
}

std::optional<BytesPerCycle> bytes_per_cycle(const Machine& machine, std::string_view key,
                                             std::optional<Clock> clock) {
    const Fact* fact = machine.find(key);
    return fact ? bytes_per_cycle(machine, *fact, clock) : std::nullopt;
}

std::optional<BytesPerCycle> bytes_per_cycle_per_sm(const Machine& machine, std::string_view key,
                                                    std::optional<Clock> clock) {
    const Fact* fact = machine.find(key);
    if (!fact) return std::nullopt;
    if (const auto one = fact->as<BytesPerCycle>(Per::sm)) return one;
    if (const auto one = fact->as<Bandwidth>(Per::sm); one && clock) return *one / *clock;
    const auto whole = bytes_per_cycle(machine, *fact, clock);
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
    const Fact* fact = machine.find(rate);
    if (!fact) return std::nullopt;
    if (const auto one = fact->as<FlopsPerCycle>(Per::sm)) return one;
    const auto whole = fact->as<FlopRate>();
    const auto sms = sm_count(machine);
    if (!whole || !sms || !clock) return std::nullopt;
    return *whole / *clock / *sms;
}

std::optional<FamilyRate> fastest_instruction(const Machine& machine, std::string_view input,
                                              std::string_view accumulator) {
    std::optional<FamilyRate> fastest;
    for (const std::string_view family : instruction_families()) {
        if (find_feature(family) && machine.lacks(family)) continue;
        const auto rate = flops_per_cycle_per_sm(machine, rate_key(family, input, accumulator));
        if (!rate && find_feature(family) && machine.has(family)) return std::nullopt;
        if (rate && (!fastest || *rate > fastest->rate)) fastest = FamilyRate{std::string(family), *rate};
    }
    return fastest;
}

std::optional<FlopRate> peak_flops(const Machine& machine, std::string_view family, std::string_view input,
                                   std::string_view accumulator, std::optional<Clock> clock) {
    if (const auto stated = machine.number<FlopRate>(peak_key(family, input, accumulator))) return stated;
    const Fact* rate = machine.find(rate_key(family, input, accumulator));
    if (!rate) return std::nullopt;
    const auto per_cycle = whole_gpu<FlopsPerCycle>(machine, *rate);
    return per_cycle && clock ? *per_cycle * *clock : rate->as<FlopRate>();
}

std::optional<NamedClock> matrix_clock(const Machine& machine, std::string_view input) {
    for (const std::string& key :
         {"clock.sustained." + std::string(input), std::string("clock.tensor"), std::string("clock.boost")})
        if (const auto clock = machine.number<Clock>(key)) return NamedClock{*clock, key};
    return std::nullopt;
}

std::optional<Clock> fitted_clock(const Machine& machine, std::string_view input) {
    if (const auto clock = machine.number<Clock>("clock.fitted." + std::string(input))) return clock;
    const auto sustained = matrix_clock(machine, input);
    return sustained ? std::optional(sustained->clock) : std::nullopt;
}

std::string calibration_note(const Machine& machine, std::string_view another_models) {
    std::string of, borrowed;
    for (const auto& [key, fact] : machine.facts) {
        if (!another_models.empty() && key.starts_with(another_models)) continue;
        if (fact.calibration == machine.id && !machine.id.empty()) return {};
        if (!fact.calibration.empty()) of = fact.calibration;
        if (is_borrowed(fact)) borrowed += (borrowed.empty() ? "; borrowed, not measured on this GPU: " : ", ") + key;
    }
    if (of.empty()) return "uncalibrated: no number of this machine was fitted to runs" + borrowed;
    return "uncalibrated: what is fitted to runs was fitted on " + of + borrowed;
}

}  // namespace rooftile
