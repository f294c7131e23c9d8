// A measured fused kernel: how long it took beside what ran with it, and that its results were right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/measure/runoff.hpp"
#include "rooftile/fuse/plan.hpp"

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
    std::optional<double> copy_us;     ///< our fastest copy kernel, as many bytes read and written in all
    std::optional<double> memcpy_us;   ///< the driver's
    std::optional<double> read_us;     ///< our fastest read kernel on the inputs, where little is written
    std::string copy_form, read_form;  ///< which of the forms those are; empty where not timed
    std::optional<double> unfused_us;  ///< every operator a kernel of its own, planned and generated likewise
    std::string missing;               ///< why one is not there

    /// What roof_fraction compares with: the reads where they were timed, else the faster copy.
    std::optional<double> roof_us() const {
        if (read_us) return read_us;
        if (copy_us && memcpy_us) return std::min(*copy_us, *memcpy_us);
        return copy_us ? copy_us : memcpy_us;
    }
    std::string_view roof_name() const { return read_us ? "read" : "copy"; }
};

struct FuseMeasurement {
    FusePlan plan;
    Mode mode = Mode::sustained;
    int plans = 1;                   ///< of this problem, measured together; 0: none fits
    std::vector<SuiteLayer> layers;  ///< of a suite: where it has the problem
    std::optional<double> time_us, time_us_low, time_us_high;  ///< median and its 95 % interval
    std::int64_t samples = 0;
    std::optional<double> gbytes_per_s;   ///< compulsory bytes over time
    std::optional<double> roof_fraction;  ///< of the baselines' roof at as many bytes
    /// As Measurement's; empty for plan 1.
    std::optional<double> rank1_ratio;
    std::optional<Runoff> runoff;
    /// What the planned instructions take at the measured clock, where that is what binds.
    std::optional<double> issue_roof_us;
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
