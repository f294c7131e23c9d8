// A machine's numbers as the GEMM formulas want them: those of tiled matrix kernels, and what a problem makes of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

struct GemmHardware : MatrixHardware {
    LineCost a_lines = {}, b_lines = {};  ///< of the problem's operands, as the GEMM reads them
    double packing_seconds = 0;           ///< of the launch that packs operands, which the kernel waits for
    double packing_bytes = 0;             ///< that it reads and writes
    double early_saving = 0;              ///< of launch_seconds, what B asked for early has saved
};

/// Seconds that a launch takes less whose B, so many bytes, is asked for before the kernel in front has ended: loads fill the ring while
/// that one ends and this one begins (docs/facts.md 381). What is left is A's way from L2, where that kernel left it. 0: unknown.
inline double early_saving(const GemmHardware& hw, double b_bytes) {
    const double b_way = b_bytes / hw.dram_bandwidth + (hw.dram_latency + hw.tma_latency) / hw.clock_hz;
    const double beside = hw.launch_seconds < b_way ? hw.launch_seconds : b_way;
    return std::max(0.0, known_or(beside - hw.few_loads_latency() / hw.clock_hz, 0));
}

/// How a launch follows the one in front.
struct Following {
    bool programmatic = true;  ///< it begins beside that one's end, or its kernel knows no other way
    bool early_weights = false;
};

/// The same where launches follow each other so.
inline GemmHardware as_launched(GemmHardware hw, Following following, double b_bytes) {
    if (!following.programmatic) hw.launch_seconds += known_or(hw.programmatic_saving, 0);
    if (!following.early_weights) return hw;
    hw.early_saving = early_saving(hw, b_bytes);
    hw.launch_seconds -= hw.early_saving;
    return hw;
}

/// Reads the numbers for matrix instructions of `family` ("wgmma", "mma_sync", "generic") on `type` with fp32
/// sums, or for CUDA cores' on fp32 ("fma"), at `clock`; empty: that of sustained matrix work. Keys that are unknown are
/// appended to `unknown`, once each. Throws RequestError where power.sustained leaves
/// nothing above power.static.
GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown, std::optional<Clock> clock = {});

}  // namespace rooftile
