// Short kernels on the GPU: verified against fp64, timed over sizes from DRAM and from L2, counted [M43].
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/report/unit_report.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

struct UnitRequest {
    Type type = Type::bf16;                                     ///< bf16 or fp32
    std::int64_t least_bytes = 16 << 10, most_bytes = 1 << 30;  ///< of x, by factors of 4
    int device = 0;
    std::uint64_t seed = 1;
    bool counters = true;
    std::function<bool()> interrupted;                 ///< true: Error(interrupted)
    std::function<void(const std::string&)> progress;  ///< may be empty
};

/// The kernels as compiled for `arch`, without a GPU: first the short ones in the order of unit_words(), then what judges them.
Source unit_source(Type type, std::string_view arch);
/// Throws Error(internal) where a kernel has a loop.
std::vector<UnitCode> unit_code(const Compiled& compiled);

/// Sizes of x.
std::vector<std::int64_t> unit_sizes(const UnitRequest& request);

struct UnitOutcome {
    UnitRun run;
    std::string gpu, driver, nvrtc;
};
/// Throws Error(no_gpu, compile_failed, gpu_failed, interrupted). A wrong result is a point that says so; it is not timed.
UnitOutcome run_units(const UnitRequest& request);

}  // namespace rooftile
