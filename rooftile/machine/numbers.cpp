#include "rooftile/machine/numbers.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view peak_begins = "peak.generic.";
constexpr std::string_view short_names[] = {"smem", "regs", "bw", "peak", "latency"};

/// The keys that a short name sets; of `peak` those of every type, as its user has one in mind. Empty: no short name.
std::vector<std::string> keys_of(std::string_view name) {
    if (name == "smem") return {"shared.per_sm"};
    if (name == "regs") return {"sm.registers"};
    if (name == "bw") return {"dram.bandwidth"};
    if (name == "latency") return {"dram.latency"};
    if (name != "peak") return {};
    std::vector<std::string> keys;
    for (const std::string_view type : {"bf16", "fp16", "fp8", "tf32", "fp32"}) keys.push_back(peak_key("generic", type, "fp32"));
    return keys;
}

[[noreturn]] void refuse(const std::string& problem) { throw RequestError("--numbers " + problem); }

/// What no key of a machine has: the nearest name, short ones too.
[[noreturn]] void refuse_name(std::string_view name) {
    std::vector<std::string> names(std::begin(short_names), std::end(short_names));
    for (const Key& key : machine_keys()) names.emplace_back(key.name);
    for (const Feature& feature : machine_features()) names.emplace_back(feature.name);
    const std::string near = nearest_name(name, names);
    refuse(fmt::format("{}: no such number; {}accepted: smem, regs, bw, peak, latency, and the keys of a machine file", printable(name, 60),
                       near.empty() ? "" : fmt::format("did you mean {}? ", near)));
}

constexpr double rounding = 1.02;  // of what datasheets print

/// What is stated twice and not the same, or more than there is: one number too many.
std::optional<std::string> contradiction(const Machine& machine) {
    const auto text = [&](std::string_view key) { return machine.find(key)->text; };
    constexpr std::pair<std::string_view, std::string_view> within[] = {
        {"shared.per_cta", "shared.per_sm"}, {"dram.sustained_read", "dram.bandwidth"}, {"dram.sustained_write", "dram.bandwidth"}, {"dram.sustained_copy", "dram.bandwidth"}};
    for (const auto& [part, all] : within) {
        const Fact *of = machine.find(part), *whole = machine.find(all);
        if (of && whole && of->dimension == whole->dimension && of->per == whole->per && of->value > rounding * whole->value)
            return fmt::format("{} = {} is more than {} = {}: leave one of them out", part, of->text, all, whole->text);
    }
    const auto sms = machine.count("sm.count");
    const auto clock = machine.number<Clock>("clock.boost");
    if (!sms || !clock) return std::nullopt;
    for (const auto& [key, fact] : machine.facts) {
        if (!key.starts_with(peak_begins)) continue;
        const std::string_view types = std::string_view(key).substr(peak_begins.size());
        for (const char* family : {"generic", "wgmma", "mma_sync"}) {
            const std::string rate = fmt::format("rate.{}.{}", family, types);
            const auto of_sm = machine.number<FlopsPerCycle>(rate, Per::sm);
            if (!of_sm) continue;
            // An instruction may be slower than the fastest.
            const double product = of_sm->value * *sms * clock->value, share = product / fact.value;
            if (share > rounding || (std::string_view(family) == "generic" && share * rounding < 1))
                return fmt::format("peak = {}, but {} ({}) x sm.count ({:g}) x clock.boost ({}) is {:.3g} TFLOP/s: leave one of them out", fact.text, rate, text(rate), *sms,
                                   text("clock.boost"), product * 1e-12);
        }
    }
    return std::nullopt;
}

}  // namespace

void take_what_follows(Machine& machine) {
    if (!machine.arch.empty()) return;
    if (const auto why = contradiction(machine)) throw RequestError(fmt::format("{}: {}", machine.id, *why));
    if (const Fact* shared = machine.find("shared.per_sm"); shared && !machine.find("shared.per_cta")) {
        Fact whole = *shared;
        whole.source = "assumed: one CTA may take all of an SM's (" + shared->source + ")";
        machine.facts.emplace("shared.per_cta", std::move(whole));
    }
    std::map<std::string, Fact> rates;
    for (const auto& [key, peak] : machine.facts)
        if (key.starts_with("peak.")) rates.emplace("rate." + key.substr(5), peak);
    for (auto& [key, rate] : rates) machine.facts.emplace(key, std::move(rate));  // unless it is there
}

Machine machine_of_numbers(std::string_view text) {
    Machine machine = inherited_machine("", "");
    machine.id = "numbers";
    machine.name = "a GPU of the numbers given";
    std::map<std::string, std::string> given;  // key: the name that set it
    if (text.find_first_not_of(' ') == text.npos) refuse("is empty; accepted: NAME=VALUE,..., as in smem=256KiB,regs=65536,bw=1TB/s,peak=50TFLOP/s,latency=500clk");
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view one = text.substr(begin, end - begin);
        begin = end + 1;
        const auto both = assignment_of(one);
        if (!both) refuse(fmt::format("\"{}\": accepted is NAME=VALUE, as in latency=500clk", printable(one, 60)));
        const std::string name(both->key);
        const std::string_view value = both->text;
        std::vector<std::string> keys = keys_of(name);
        if (keys.empty()) {
            const std::string_view feature = std::string_view(name).starts_with("features.") ? std::string_view(name).substr(9) : std::string_view(name);
            if (!find_feature(feature) && !match_key(name).key) refuse_name(name);
            keys.push_back(name);
        }
        for (const std::string& key : keys) {
            const auto [other, first] = given.emplace(key, name);
            if (!first) refuse(other->second == name ? fmt::format("{} is given twice: leave one out", name) : fmt::format("{} is given twice, as {} and as {}: leave one out", key, other->second, name));
            try {
                set_fact(machine, key, value, "--numbers");
            } catch (const RequestError& error) {
                // Under the name that was written.
                const std::string said = error.what();
                refuse(name + said.substr(said.starts_with(key) ? key.size() : 0));
            }
        }
    }
    if (const auto why = contradiction(machine)) refuse(*why);
    take_what_follows(machine);
    return machine;
}

}  // namespace rooftile
