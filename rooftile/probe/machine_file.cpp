// From measured numbers to a machine file, and where they differ from it.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <variant>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/probe/probe.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {

double ProbePoint::at(std::string_view name) const {
    for (const auto& [field, value] : fields)
        if (field == name) return value;
    throw std::out_of_range(fmt::format("a row of {} has no {}", series, name));
}

bool ProbePoint::has(std::string_view name) const {
    for (const auto& field : fields)
        if (field.first == name) return true;
    return false;
}

namespace {

/// Four digits; a whole number where the unit counts whole things.
std::string value_text(const ProbeValue& v) {
    const bool whole = v.unit == "B" || v.unit == "SMs";
    return fmt::format("{} {}", whole ? shortest_text(std::round(v.value)) : input_text(v.value, ""), v.unit);
}

/// The measured number as `key`'s fact; empty, with the reason, where the key refuses it.
std::optional<Fact> fact_of(const ProbeValue& v, const std::string& source, std::string& problem) {
    if (!std::isfinite(v.value)) {
        problem = fmt::format("{}: no finite value", v.name);
        return std::nullopt;
    }
    Machine scratch;
    try {
        set_fact(scratch, v.key, value_text(v), source);
    } catch (const RequestError& error) {
        problem = error.what();
        return std::nullopt;
    }
    return scratch.facts.at(v.key);
}

constexpr std::string_view of_one_fit[] = {"power.static",        "energy.exponent", "energy.flop.bf16",
                                           "energy.fill",         "energy.dram",     "energy.shared_read",
                                           "clock.sustained.bf16"};

bool is_of_fit(std::string_view key) {
    return std::find(std::begin(of_one_fit), std::end(of_one_fit), key) != std::end(of_one_fit);
}

/// Those of energy_keys() for which the run has no number that the key takes.
std::vector<std::string> missing_of_fit(const ProbeRun& run) {
    std::vector<std::string> missing(std::begin(of_one_fit), std::end(of_one_fit));
    for (const ProbeResult& result : run.results)
        for (const ProbeValue& v : result.values) {
            std::string problem;
            if (is_of_fit(v.key) && fact_of(v, "probe", problem)) std::erase(missing, v.key);
        }
    return missing;
}

}  // namespace

std::span<const std::string_view> energy_keys() { return of_one_fit; }

Machine probed_machine(const ProbeRun& run, std::string_view date, std::string_view command,
                       std::vector<std::string>& notes) {
    Machine machine = run.gpu.machine;
    const std::vector<std::string> missing = missing_of_fit(run);
    bool fit_left_out = false;
    for (const ProbeResult& result : run.results) {
        for (const ProbeValue& v : result.values) {
            if (v.key.empty()) continue;
            if (!missing.empty() && is_of_fit(v.key)) {
                fit_left_out = true;
                continue;
            }
            // The reader keeps 400 bytes of a source.
            const std::string spread =
                v.samples > 1
                    ? fmt::format("+- {} over {} samples", with_unit(number_text(v.spread, 2), v.unit == "1" ? "" : v.unit), v.samples)
                    : "one reading";
            const std::string source =
                fmt::format("measured on one {}, {}: {}{}{}; `{}`", run.gpu.name, date, spread,
                            v.note.empty() ? "" : "; ", v.note, printable(command, 100));
            std::string problem;
            if (auto fact = fact_of(v, printable(source, 400), problem))
                machine.facts.insert_or_assign(v.key, std::move(*fact));
            else notes.push_back("not in the machine file: " + problem);
        }
    }
    if (fit_left_out)
        notes.push_back(fmt::format("not in the machine file: the energies, which are one fit with {}: no {}",
                                    "power.static and clock.sustained.bf16", fmt::join(missing, ", no ")));
    return machine;
}

std::optional<double> in_form(const Fact& fact, Dimension dimension, Per per, double clock_hz, double sms) {
    Dimension from = fact.dimension;
    const int cycles = dimension.cycle - from.cycle;  // that take the place of seconds
    from.cycle += cycles, from.second -= cycles;
    if (from != dimension) return std::nullopt;
    double value = fact.value * std::pow(clock_hz, cycles);
    if (fact.per != per) value = per == Per::sm ? value / sms : value * sms;
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

namespace {

/// Measured over said; of the clocks that a probe may have run at, the one that brings them closest. Empty
/// where the two cannot be compared.
std::optional<double> ratio_of(const Fact& measured, const Fact& said, const Machine& machine) {
    const auto value_of = [&](const char* key) {
        const Fact* fact = machine.find(key);
        return fact ? fact->value : std::nan("");
    };
    std::optional<double> nearest;
    for (const char* clock : {"clock.boost", "clock.sustained.bf16"}) {
        const auto as_said =
            in_form(measured, said.dimension, said.per, value_of(clock), value_of("sm.count"));
        if (!as_said) continue;
        const double ratio = said.value > 0 ? *as_said / said.value : *as_said > 0 ? INFINITY : 1;
        // Between the two clocks lies what the probe ran at.
        if (nearest && (*nearest - 1) * (ratio - 1) <= 0) return 1;
        if (!nearest || std::abs(ratio - 1) < std::abs(*nearest - 1)) nearest = ratio;
    }
    return nearest;
}

}  // namespace

std::vector<ProbeDifference> differences(const ProbeRun& run, double tolerance) {
    std::vector<ProbeDifference> found;
    for (const ProbeResult& result : run.results) {
        for (const ProbeValue& v : result.values) {
            const auto shipped = run.gpu.machine.facts.find(v.key);
            if (v.key.empty() || shipped == run.gpu.machine.facts.end()) continue;
            std::string problem;
            const auto fact = fact_of(v, "probe", problem);
            if (!fact) continue;
            const auto ratio = ratio_of(*fact, shipped->second, run.gpu.machine);
            if (ratio && std::abs(*ratio - 1) > tolerance)
                found.push_back({v.key, shipped->second.text, fact->text, *ratio});
        }
    }
    return found;
}

}  // namespace rooftile
