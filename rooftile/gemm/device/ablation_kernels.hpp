// Kernels compiled without a part, for timing. For rooftile/measure's own sources.
#pragma once

#include <string>
#include <vector>

#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/measure/timing.hpp"
#include "rooftile/measure/verifier.hpp"

namespace rooftile {

/// One of them, loaded into the current context.
struct TimedPart {
    std::string name;
    TensorLaunch launch;
    std::size_t index;  ///< of AblationStudy::parts
};

/// The plan's kernel without its loads, without its products, without its store: an entry of `study` each,
/// and a launch for each that compiles.
std::vector<TimedPart> timed_parts(const GemmPlan& plan, AblationStudy& study);

/// Times and clock; why there are none where it could not be timed.
void set_part(PartTime& part, const TimedResult& timed);

}  // namespace rooftile
