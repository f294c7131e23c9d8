// How far a predicted time may be off: where measured times of problems of the same kind lay, by records that the machine's file keeps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rooftile/core/problem.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Holds the measured time of 90 % of problems that are drawn by the same law.
struct PredictedInterval {
    double low_us, high_us;
    std::string machine;  ///< whose runs say so
};

/// Of a predicted time; empty where no runs of such problems are in the machine's calibration: keys interval.*.low and .high.
/// The star is "OPERATION-LAW-short" or "-long": relative errors of launches under 20 us are about twice as wide. Empty too where another
/// number of the machine was changed: nobody measured on such a machine.
std::optional<PredictedInterval> predicted_interval(const Machine& machine, const Problem& problem, double time_us);
/// The same of a kind of launches that is no operation's: its star is "KIND-short" or "-long".
std::optional<PredictedInterval> predicted_interval(const Machine& machine, std::string_view kind, double time_us);
/// Where it is empty since the machine was changed: that in words, else nothing.
std::string why_no_interval(const Machine& machine, const Problem& problem, double time_us);

}  // namespace rooftile
