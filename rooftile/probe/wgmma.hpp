// The wgmma_load kernel as a run: which N, on how many SMs, with what data and how much TMA beside it.
#pragma once

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {

struct WgmmaSetup {
    int n = 256;
    int ctas = 1;
    int steps = 0;            ///< k-steps of 64 of each of two warpgroups
    double fill_per_clk = 0;  ///< bytes a cycle that TMA loads from L2 into each SM; 0: none
    bool zeros = false;       ///< operands of zeros instead of random numbers

    /// m64nNk16 instructions of one CTA.
    double instructions() const { return 2.0 * 4 * steps; }
    double flops() const { return instructions() * 2 * 64 * n * 16; }
    /// Bytes that the instructions read from shared memory: A is 64 x 16, B is N x 16.
    double shared_bytes() const { return instructions() * (64 + n) * 32; }
};

constexpr double wgmma_box_bytes = wgmma_ring_rows * 128.0;

SampledLaunch wgmma_run(LaunchSampler& launcher, const WgmmaSetup& setup);
/// The matrix product's main loop, 128 x `n` (128 or 256) on `ctas` SMs, `steps` k-steps of 64 from L2.
SampledLaunch wgmma_stream_run(LaunchSampler& launcher, int n, int ctas, int steps);

}  // namespace rooftile
