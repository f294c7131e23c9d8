#include "rooftile/core/interval.hpp"

#include <fmt/core.h>

#include "rooftile/core/operation.hpp"

namespace rooftile {
namespace {

constexpr double short_us = 20;  // as bench/fit_intervals.py, which fits what is looked up here

}  // namespace

std::optional<PredictedInterval> predicted_interval(const Machine& machine, const Problem& problem,
                                                    double time_us) {
    const std::string_view law = problem.operation->traits(problem).law;
    if (law.empty()) return std::nullopt;
    const std::string kind = fmt::format("interval.{}-{}-{}.", problem.operation->name(), law,
                                         time_us < short_us ? "short" : "long");
    const Fact *low = machine.find(kind + "low"), *high = machine.find(kind + "high");
    if (!low || !high) return std::nullopt;
    return PredictedInterval{time_us * low->value, time_us * high->value,
                             low->calibration.empty() ? machine.id : low->calibration};
}

}  // namespace rooftile
