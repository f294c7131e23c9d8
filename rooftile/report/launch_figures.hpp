// What rows say of kernels that were launched in two ways in the same rounds: as planned, and another way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

/// Below this, ratios and shares are left out: launches and clocks decide, and differences are told in microseconds.
inline constexpr double least_judged_us = 5;

/// One problem, by the plan ranked first.
struct LaunchPoint {
    std::string band;  ///< of problems alike
    std::optional<double> time_us, predicted_us;
    std::optional<double> ratio, baseline_us;  ///< the baseline's time over ours; that time
    const std::vector<RecordedVariant>* variants;
};
/// Whether ratios say anything of it.
bool is_judged(const LaunchPoint& point);

/// Over the problems of a band, or over all under 5 us. Empty: no row says.
struct LaunchFigures {
    std::string name;  ///< of the other way
    std::string band;
    bool in_us = false;  ///< under 5 us: else ratios
    int problems = 0;    ///< timed in both ways
    /// In us: our time less the baseline's, mean. Else the baseline's time over ours, geometric mean.
    std::optional<double> planned{}, other{};
    /// In us: of predicted - measured. Else of predicted / measured - 1.
    std::optional<PredictionError> planned_error{}, other_error{};
};

/// In the order in which ways and bands come.
std::vector<LaunchFigures> launch_figures(std::span<const LaunchPoint> points);

/// "M < 128, 12 problems: 1.117 as planned, 1.065 without programmatic launch; ..."
std::string launch_text(const LaunchFigures& figures);

}  // namespace rooftile
