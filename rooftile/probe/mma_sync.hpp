// The mma_sync_stream kernel as a run: which type, how many warps, and what each multiplies.
#pragma once

#include <span>
#include <string>

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {

struct MmaSyncSetup {
    const char* type = "bf16";
    int warps = 8;              ///< of one CTA, which has the SM
    int rows = 4, columns = 8;  ///< fragments of A (16 rows) and of B (8 columns) of a warp
    int ctas = 1, loops = 1;

    /// FLOP of a CTA in one loop.
    double flops_a_loop() const { return 2.0 * 16 * 8 * 16 * rows * columns * warps; }
    /// "mma_sync_stream<rooftile::Type::bf16, 8, 4, 8>".
    std::string kernel() const;
    /// Whose rate stands in a machine file: a warp's 64 x 64 on 8 warps.
    bool of_machine() const { return warps == 8 && rows == 4; }
};

/// Those that the probe compares.
std::span<const MmaSyncSetup> mma_sync_setups();
SampledLaunch mma_sync_run(LaunchSampler& launcher, const MmaSyncSetup& setup);

}  // namespace rooftile
