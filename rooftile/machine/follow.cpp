#include "rooftile/machine/follow.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

// One edge: `measured` keeps its share of `rated`. A star stands for any end of a key.
struct Follows {
    std::string_view rated, measured;
};
constexpr Follows follows[] = {
    {"sm.count", "cluster.sms_*"},         {"sm.count", "store.*"},
    {"clock.memory", "dram.bandwidth"},    {"clock.boost", "clock.tensor"},
    {"clock.tensor", "clock.sustained.*"}, {"dram.bandwidth", "dram.sustained_*"},
    {"power.tdp", "power.sustained"},
};

bool fits(std::string_view pattern, std::string_view key) {
    if (!pattern.ends_with('*')) return pattern == key;
    return key.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool is_rate_or_peak(std::string_view key) {
    return (key.starts_with("rate.") || key.starts_with("peak."))
           && match_key(key).key->name.ends_with(".*.*.*");
}

// FLOP/s of the whole GPU were stated at a clock and for so many SMs. CUDA cores run at clock.boost, matrix units at
// clock.tensor.
bool flops_follow(std::string_view rated, std::string_view key, const Fact& fact) {
    if (!is_rate_or_peak(key) || fact.dimension != FlopRate::dimension) return false;
    const bool on_cuda_cores = key.substr(5).starts_with("fma.");
    return rated == "sm.count" || rated == (on_cuda_cores ? "clock.boost" : "clock.tensor");
}

// rate.X and peak.X are two ways to say one thing.
std::string twin_of(std::string_view key) {
    if (!is_rate_or_peak(key)) return {};
    return (key.starts_with("rate.") ? "peak." : "rate.") + std::string(key.substr(5));
}

// A fact of the whole GPU in one form, B/s or FLOP/s, whichever the file has; empty where it has another dimension.
std::optional<double> whole_per_second(const Machine& machine, std::string_view key) {
    const auto clock = machine.number<Clock>("clock.boost");
    if (const auto bytes = bandwidth(machine, key, clock)) return bytes->value;
    if (!is_rate_or_peak(key)) return std::nullopt;
    const auto top = machine.number<Clock>("clock.tensor");
    const auto sms = machine.count("sm.count");
    if (const auto flops = machine.number<FlopRate>(key)) return flops->value;
    const auto one = machine.number<FlopsPerCycle>(key, Per::sm);
    if (!one || !sms || (!top && !clock)) return std::nullopt;
    return (*one * *sms * top.value_or(clock.value_or(Clock(0)))).value;
}

class Scaling {
  public:
    Scaling(Machine& machine, std::string_view set_key, const std::set<std::string, std::less<>>& set)
        : machine_(machine), set_key_(set_key), set_(set) {}

    /// Scales all that follows `rated`, and what follows that.
    void follow(std::string_view rated, double ratio) {
        if (ratio == 1) return;
        const auto facts = machine_.facts;  // as scaling changes them
        for (const auto& [key, fact] : facts) {
            if (key == rated || set_.contains(key)) continue;
            if (flops_follow(rated, key, fact)) {
                scale(key, ratio, fmt::format("times {:.3g} as it", ratio));
                continue;
            }
            for (const Follows& f : follows)
                if (f.rated == rated && fits(f.measured, key)) follow_one(rated, key, ratio);
        }
        // Where the number between is unknown, what follows it follows this one.
        for (const Follows& f : follows)
            if (f.rated == rated && !f.measured.ends_with('*') && !machine_.find(f.measured))
                follow(f.measured, ratio);
    }

    void scale(const std::string& key, double ratio, std::string_view how) {
        const Fact& fact = machine_.facts.at(key);
        const NumberParts parts = parts_of(fact.text);
        const Key& row = *match_key(key).key;
        double number = std::get<NumberText>(parse_number(parts.number)).value * ratio;
        if (row.units == "SMs") number = whole_clusters(key, number);
        const auto text = parse_number(fmt::format("{:.12g} {}", number, parts.unit));
        auto scaled = make_fact(row, std::get<NumberText>(text), fmt::format("--set {}: {}", set_key_, how));
        if (const auto* problem = std::get_if<TextProblem>(&scaled))
            throw RequestError(fmt::format("{} = \"{:.6g} {}\", which follows {}: {}", key, number,
                                           parts.unit, set_key_, problem->message));
        machine_.facts.insert_or_assign(key, std::move(std::get<Fact>(scaled)));
    }

  private:
    void follow_one(std::string_view rated, const std::string& key, double ratio) {
        const Fact *above = machine_.find(rated), *fact = machine_.find(key);
        const bool comparable = above && above->dimension == fact->dimension && above->per == fact->per;
        // `rated` has its new value by now, `key` still its old one.
        const double share = comparable ? fact->value * ratio / above->value : 0;
        const bool clusters = rated == "sm.count";
        scale(key, ratio,
              clusters     ? fmt::format("times {:.3g} as it, in whole clusters", ratio)
              : comparable ? fmt::format("{:.3g} of {}, as before", share, rated)
                           : fmt::format("times {:.3g} as it", ratio));
        if (key.starts_with("clock.sustained.")) restate_energies(key, ratio);
        follow(key, ratio);
    }

    // Joules are stated at the sustained clock. That of another clock is restated, so that power at a given clock stays:
    // what a clock setting changes is how far the clock can go. The joules of bytes are the probe's, at bf16's clock.
    void restate_energies(std::string_view clock, double ratio) {
        const auto exponent = machine_.number<Ratio>("energy.exponent");
        if (!exponent) return;
        const std::string type(clock.substr(clock.rfind('.') + 1));
        std::vector<std::string> energies{"energy.flop." + type};
        if (type == "bf16")
            energies.insert(energies.end(), {"energy.fill", "energy.instruction", "energy.shared_read", "energy.dram"});
        for (const std::string& key : energies)
            if (machine_.find(key) && !set_.contains(key))
                scale(key, std::pow(ratio, exponent->value), fmt::format("restated for the new {}", clock));
    }

    // cluster.sms_<n>: clusters of n can use a multiple of n SMs.
    static double whole_clusters(std::string_view key, double sms) {
        const double size = key.back() - '0';
        constexpr double rounding = 1e-9;
        return std::max(size, std::floor(sms / size + rounding) * size);
    }

    Machine& machine_;
    std::string_view set_key_;
    const std::set<std::string, std::less<>>& set_;
};

bool has_followers(const Machine& machine, std::string_view key) {
    for (const auto& [other, fact] : machine.facts)
        for (const Follows& f : follows)
            if (f.rated == key && fits(f.measured, other)) return true;
    return false;
}

}  // namespace

void scale_followers(Machine& machine, const Machine& before, std::string_view key,
                     const std::set<std::string, std::less<>>& set) {
    const Fact *now = machine.find(key), *was = before.find(key);
    Scaling scaling(machine, key, set);
    const std::string twin = twin_of(key);
    if (!twin.empty() && now && machine.find(twin) && !set.contains(twin)) {
        // A peak that was not stated is what the rate gives.
        const auto new_flops = whole_per_second(machine, key),
                   old_flops = whole_per_second(before, was ? std::string(key) : twin);
        if (new_flops && old_flops) {
            const double ratio = *new_flops / *old_flops;
            scaling.scale(twin, ratio, fmt::format("times {:.3g} as it", ratio));
        }
    }
    if (!now || !was) return;
    if (now->dimension == was->dimension && now->per == was->per) {
        if (was->value > 0) scaling.follow(key, now->value / was->value);
        return;
    }
    if (!has_followers(machine, key)) return;
    const auto new_rate = whole_per_second(machine, key), old_rate = whole_per_second(before, key);
    if (!new_rate || !old_rate)
        throw RequestError(fmt::format(
            "{} was {}: without sm.count and clock.boost {} cannot be compared with it, and measured numbers "
            "follow it; give it in the same unit",
            key, was->text, now->text));
    scaling.follow(key, *new_rate / *old_rate);
}

int order_of_setting(std::string_view key) {
    constexpr std::string_view first[] = {"energy.exponent", "sm.count", "clock.memory", "clock.boost",
                                          "clock.tensor"};
    for (int i = 0; i < int(std::size(first)); ++i)
        if (first[i] == key) return i;
    const bool rated = key == "dram.bandwidth" || key == "power.tdp" || key.starts_with("peak.");
    return int(std::size(first)) + (rated ? 0 : 1);
}

}  // namespace rooftile
