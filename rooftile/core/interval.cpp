#include "rooftile/core/interval.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/core/operation.hpp"

namespace rooftile {
namespace {

constexpr double short_us = 20;  // as bench/fit_intervals.py, which fits what is looked up here

std::optional<PredictedInterval> recorded_interval(const Machine& machine, std::string_view kind, double time_us) {
    const std::string key = fmt::format("interval.{}-{}.", kind, time_us < short_us ? "short" : "long");
    const Fact *low = machine.find(key + "low"), *high = machine.find(key + "high");
    if (!low || !high) return std::nullopt;
    return PredictedInterval{time_us * low->value, time_us * high->value,
                             low->calibration.empty() ? machine.id : low->calibration};
}

std::optional<PredictedInterval> recorded_interval(const Machine& machine, const Problem& problem, double time_us) {
    const std::string_view law = problem.operation->traits(problem).law;
    if (law.empty()) return std::nullopt;
    return recorded_interval(machine, fmt::format("{}-{}", problem.operation->name(), law), time_us);
}

/// Keys that make it another machine; intervals themselves do not.
std::vector<std::string> changed_keys(const Machine& machine) {
    std::vector<std::string> out;
    for (const std::string& key : machine.changed)
        if (!key.starts_with("interval.")) out.push_back(key);
    return out;
}

}  // namespace

std::optional<PredictedInterval> predicted_interval(const Machine& machine, const Problem& problem, double time_us) {
    return changed_keys(machine).empty() ? recorded_interval(machine, problem, time_us) : std::nullopt;
}

std::optional<PredictedInterval> predicted_interval(const Machine& machine, std::string_view kind, double time_us) {
    return changed_keys(machine).empty() ? recorded_interval(machine, kind, time_us) : std::nullopt;
}

std::string why_no_interval(const Machine& machine, const Problem& problem, double time_us) {
    const std::vector<std::string> changed = changed_keys(machine);
    if (changed.empty() || !recorded_interval(machine, problem, time_us)) return {};
    return fmt::format("runs are recorded for {} as it is, and {} {} changed", machine.id, fmt::join(changed, ", "),
                       changed.size() == 1 ? "is" : "are");
}

}  // namespace rooftile
