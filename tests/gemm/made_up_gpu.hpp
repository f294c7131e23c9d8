// A GPU with round numbers, for arithmetic that a reader can follow.
#pragma once

#include "rooftile/gemm/model.hpp"

namespace rooftile {

inline GemmHardware made_up_gpu() {
    GemmHardware hw{};
    hw.sms = 4;
    hw.clock_hz = hw.sustained_hz = 1e9;
    hw.flops_per_cycle = 4096;
    hw.peak_flops = 4 * 4096e9;
    hw.shared_bandwidth = 128;
    hw.l2_port = 64;
    hw.l2_share = 32;
    hw.dram_share = 8;
    hw.dram_bandwidth = 32e9;
    hw.l2_bytes = 1 << 20;
    hw.on_chip_bytes = 1 << 21;
    hw.dram_latency = 700;
    hw.l2_latency = 200;
    hw.tma_latency = 0;
    hw.launch_seconds = 0;
    hw.sms_per_gpc = 4;
    hw.issue_lanes = 128;
    hw.dsmem_bandwidth = 16;
    hw.dsmem_latency = 200;
    hw.cluster_barrier = 400;
    return hw;
}

inline GemmCandidate wgmma_tile(int m, int n) {
    GemmCandidate tile{{.tile_m = m, .tile_n = n, .tile_k = 64}};
    tile.warp_m = 64, tile.warp_n = n;
    return tile;
}

}  // namespace rooftile
