// TMA streams as data: where the boxes come from, how many are in flight, on how many SMs.
#pragma once

#include <cstdint>
#include <string>

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {

/// One configuration of the tma_stream kernel.
struct StreamSetup {
    bool from_l2 = false;  ///< all CTAs read the same 8 MiB; else each a region of 16 MiB of its own
    bool tensor = true;    ///< boxes of a tensor map; else the same bytes in one contiguous piece
    int box_rows = 64;     ///< of 128 bytes
    int stages = 1;
    int ctas = 1;
    std::int64_t bytes_per_cta = 0;  ///< that each loads
    int first_region = 0;            ///< of CTA 0, from DRAM; so that runs do not warm L2 for each other
    int region_step = 0;             ///< regions further on, the next round; 0: as many as CTAs
    int l2_promotion_bytes = 256;    ///< a matrix product's; the box beside it comes to L2 with a box

    std::int64_t box_bytes() const { return std::int64_t{box_rows} * 128; }
    std::int64_t in_flight() const { return box_bytes() * stages; }
    int boxes() const { return static_cast<int>(bytes_per_cta / box_bytes()); }
};

/// Its memory: one region for each SM, random numbers. Streams from L2 use the first 8 MiB.
std::size_t stream_bytes(const LaunchSampler& launcher);
SampledLaunch stream_run(LaunchSampler& launcher, const StreamSetup& setup);
/// The boxes of CTA 0 in regions of `region_bytes`; `regions` of them.
BoxSequence box_sequence(int box_rows, std::size_t region_bytes, int regions, int region_step, int stagger);

constexpr std::size_t l2_stream_bytes = std::size_t{8} << 20;

}  // namespace rooftile
