// A machine's numbers as the GEMM formulas want them: those of tiled matrix kernels, and what a problem makes of them.
#pragma once

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
};

/// The same where a launch begins when the one before it has ended.
inline GemmHardware launched_apart(GemmHardware hw) {
    hw.launch_seconds += known_or(hw.programmatic_saving, 0);
    return hw;
}

/// Reads the numbers for matrix instructions of `family` ("wgmma", "mma_sync", "generic") on `type` with fp32
/// sums, or for CUDA cores' on fp32 ("fma"), at `clock`; empty: that of sustained matrix work. Keys that are unknown are
/// appended to `unknown`, once each. Throws RequestError where power.sustained leaves
/// nothing above power.static.
GemmHardware gemm_hardware(const Machine& machine, std::string_view family, Type type,
                           std::vector<std::string>& unknown, std::optional<Clock> clock = {});

}  // namespace rooftile
