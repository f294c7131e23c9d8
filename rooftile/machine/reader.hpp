// A machine's facts as the plain numbers that formulas calculate with: NaN is unknown, and does not bind.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rooftile/machine/query.hpp"

namespace rooftile {

/// Reads a machine's numbers at one SM clock. The keys of those that a formula needs and nobody knows are appended to
/// `unknown`, once each.
class MachineReader {
  public:
    MachineReader(const Machine& machine, std::optional<Clock> clock, std::vector<std::string>& unknown)
        : machine_(machine), clock_(clock), unknown_(unknown) {}

    /// A number that need not be known.
    template <class Q>
    static double known(const std::optional<Q>& number, double otherwise = std::nan("")) {
        if (!number) return otherwise;
        if constexpr (std::is_same_v<Q, double>) return *number;
        else return number->value;
    }
    /// A number that is needed, under `key`.
    template <class Q>
    double needed(std::string_view key, const std::optional<Q>& number, double otherwise = std::nan("")) {
        // A number can be known and still not be convertible: then what is missing is the clock or the SMs.
        if (!number && !machine_.find(key)
            && std::find(unknown_.begin(), unknown_.end(), key) == unknown_.end())
            unknown_.emplace_back(key);
        return known(number, otherwise);
    }

    double count(std::string_view key) { return needed(key, machine_.count(key)); }
    double bytes(std::string_view key) { return needed(key, machine_.number<Bytes>(key)); }
    double seconds(std::string_view key) { return needed(key, machine_.number<Seconds>(key)); }
    double cycles(std::string_view key) { return needed(key, latency_cycles(machine_, key, clock_)); }
    /// Of the whole GPU, B/s.
    double bandwidth(std::string_view key) { return needed(key, rooftile::bandwidth(machine_, key, clock_)); }
    /// One SM's share of a bandwidth, B/clk.
    double share_of_sm(std::string_view key) {
        return needed(key, bytes_per_cycle_per_sm(machine_, key, clock_));
    }
    /// Of one SM by itself, B/clk.
    double of_sm(std::string_view key) { return needed(key, machine_.number<BytesPerCycle>(key, Per::sm)); }

    /// The same, unknown without a word.
    template <class Q>
    double known_number(std::string_view key, Per per = Per::gpu) const {
        return known(machine_.number<Q>(key, per));
    }
    double known_cycles(std::string_view key) const { return known(latency_cycles(machine_, key, clock_)); }

    /// The first of `keys` that the machine knows; the last where it knows none.
    std::string_view first_of(std::initializer_list<std::string_view> keys) const {
        const auto found =
            std::find_if(keys.begin(), keys.end(), [&](std::string_view key) { return machine_.find(key); });
        return found == keys.end() ? *(keys.end() - 1) : *found;
    }

  private:
    const Machine& machine_;
    std::optional<Clock> clock_;
    std::vector<std::string>& unknown_;
};

}  // namespace rooftile
