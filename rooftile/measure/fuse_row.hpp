// A measured fused kernel: how long it took beside what ran with it, and that its results were right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/measure/measurement.hpp"
#include "rooftile/plan/fuse_plan.hpp"

namespace rooftile {

/// A fused kernel's outputs against fp64, over a sample of rows.
struct FuseCheck {
    bool checked = false;  ///< false: `failure` says why nothing was compared
    std::int64_t compared = 0, undecided = 0;
    double max_error = 0;  ///< largest |error| / bound; 1 is the limit
    double bound = 0;      ///< there, in the output's units
    std::string failure;   ///< where not right: which element, got, expected, bound
    bool ok() const { return checked && failure.empty(); }
};

/// What ran beside our kernels. Empty where it did not.
struct FuseBaselines {
    std::optional<double> copy_us;     ///< our own copy kernel, as many bytes read and written in all
    std::optional<double> memcpy_us;   ///< the driver's
    std::optional<double> unfused_us;  ///< every operator a kernel of its own, planned and generated likewise
    std::string missing;               ///< why one is not there
};

struct FuseMeasurement {
    FusePlan plan;
    Mode mode = Mode::sustained;
    std::optional<double> time_us, time_us_low, time_us_high;  ///< median and its 95 % interval
    std::int64_t samples = 0;
    std::optional<double> gbytes_per_s;   ///< compulsory bytes over time
    std::optional<double> roof_fraction;  ///< of the faster copy at as many bytes
    FuseCheck verified;
    std::optional<double> sm_clock_mhz, power_w;
    int registers = 0;
    double compile_seconds = 0;
    std::string invalid;  ///< why there is no time: it did not compile, is wrong, could not be launched
};

struct FuseRun {
    std::vector<FuseMeasurement> rows;  ///< in the order of the plans
    FuseBaselines baselines;
    std::vector<Timing> timings;
    std::string gpu, driver, nvrtc;
    std::vector<std::string> notes;
};

}  // namespace rooftile
