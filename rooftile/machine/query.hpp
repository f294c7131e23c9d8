// Numbers of a machine in the form a formula wants, whichever form the file gives them in. Every function
// is empty where an input is unknown. `_per_sm` means one SM's part: of a number given per GPU, the share of
// each of `sm.count` SMs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rooftile/machine/machine.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

/// A latency in SM cycles at `clock`; `clock` is not needed where the file gives cycles.
std::optional<Cycles> latency_cycles(const Machine& machine, std::string_view key,
                                     std::optional<Clock> clock = {});

/// A bandwidth of the whole GPU in B/s, or in B per SM cycle.
std::optional<Bandwidth> bandwidth(const Machine& machine, std::string_view key,
                                   std::optional<Clock> clock = {});
std::optional<BytesPerCycle> bytes_per_cycle(const Machine& machine, std::string_view key,
                                             std::optional<Clock> clock = {});
/// One SM's share of a bandwidth in B per SM cycle.
std::optional<BytesPerCycle> bytes_per_cycle_per_sm(const Machine& machine, std::string_view key,
                                                    std::optional<Clock> clock = {});

/// `bytes_per_cycle` of l2.bandwidth and `bandwidth` of dram.bandwidth.
std::optional<BytesPerCycle> l2_bandwidth(const Machine& machine, std::optional<Clock> clock = {});
std::optional<Bandwidth> dram_bandwidth(const Machine& machine, std::optional<Clock> clock = {});

/// "rate.wgmma.bf16.fp32" and its like.
std::string rate_key(std::string_view family, std::string_view input, std::string_view accumulator);
std::string peak_key(std::string_view family, std::string_view input, std::string_view accumulator);

/// FLOP per cycle of one SM, from rate.*; a file that gives it in FLOP/s needs clock and SM count.
std::optional<FlopsPerCycle> flops_per_cycle_per_sm(const Machine& machine, std::string_view rate,
                                                    std::optional<Clock> clock = {});
/// A family of matrix instructions and its rate on one SM.
struct FamilyRate {
    std::string family;  ///< "wgmma"
    FlopsPerCycle rate;
};
/// The machine's fastest on these types. Empty where it is known to have a family whose rate is unknown.
std::optional<FamilyRate> fastest_instruction(const Machine& machine, std::string_view input,
                                              std::string_view accumulator);
/// FLOP/s of the GPU: peak.* where stated, else rate.* x SMs x clock.
std::optional<FlopRate> peak_flops(const Machine& machine, std::string_view family, std::string_view input,
                                   std::string_view accumulator, std::optional<Clock> clock = {});

/// A clock and the key it stands under, for explanations.
struct NamedClock {
    Clock clock;
    std::string key;
};
/// The SM clock under sustained matrix work on `input`: clock.sustained.<input>, else clock.tensor, else
/// clock.boost.
std::optional<NamedClock> matrix_clock(const Machine& machine, std::string_view input);

/// The clock at which a product of `input` turns what is given in seconds into cycles: clock.fitted.<input>, else matrix_clock.
/// Latencies were fitted so, and are spent at whatever clock the SMs have: at another clock they would not be what was fitted.
std::optional<Clock> fitted_clock(const Machine& machine, std::string_view input);

/// Another GPU's number, or made from one: nobody measured it on this one. Its source says so first.
inline bool is_borrowed(const Fact& fact) { return fact.source.starts_with("borrowed"); }

/// Whose fitted numbers a prediction takes, and which are borrowed, for a plan's notes; empty where the machine has a calibration of its own.
/// Keys that begin with `another_models` do not count, if that says anything.
std::string calibration_note(const Machine& machine, std::string_view another_models = {});

}  // namespace rooftile
