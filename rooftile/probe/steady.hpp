// A load kept up until clock and power follow it, and what the GPU then draws and does.
#pragma once

#include <optional>

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {

/// One stretch of it.
struct Steady {
    double power_w = 0;  ///< NVML's reading where there is one, else by the energy counter
    std::optional<double> counter_w, reading_w, temperature_c;
    unsigned long long reasons = 0;
    double seconds = 0;   ///< of GPU time that the rates are over
    double launches = 0;  ///< in it
    double clock_hz = 0;  ///< mean: under the power limit clocks go up and down
    double clock_spread = 0;
    double boxes = 0;  ///< of one launch, all CTAs
};

/// Launches `run` without a pause, at first until the load has settled (`scale` times as long as usual), then for a window that
/// the figures are over. Null: the GPU stands idle as long.
Steady keep_up(LaunchSampler& launcher, const SampledLaunch* run, double scale = 1);
/// What that takes at most.
double steady_seconds(double scale = 1);

}  // namespace rooftile
