// The loads of `rooftile machine probe` as one H200 drew them on 2026-11-21, power limit 700 W.
#pragma once

#include <string>
#include <vector>

#include "rooftile/probe/fit.hpp"

namespace rooftile {

inline std::vector<EnergyPoint> h200_loads() {
    struct Row {
        const char* label;
        double power_w, clock_mhz;  ///< NVML's reading; the median launch's SM clock
        bool held;
        double tflops, zero_tflops, fill_tbps, dram_tbps;
    };
    constexpr Row rows[] = {
        {"idle", 122.3, 1980, false, 0.0, 0.0, 0.000, 0.000},
        {"spin, one warp an SM", 134.5, 1980, false, 0.0, 0.0, 0.000, 0.000},
        {"wgmma n256 random", 687.5, 1599, true, 855.5, 0.0, 0.000, 0.000},
        {"wgmma n256 zeros", 276.7, 1755, false, 0.0, 948.0, 0.000, 0.000},
        {"wgmma n256 random + TMA 48", 685.2, 1515, true, 784.3, 0.0, 3.439, 0.000},
        {"wgmma n128 random", 684.6, 1599, true, 821.0, 0.0, 0.000, 0.000},
        {"wgmma n128 random + TMA 48", 681.3, 1500, true, 779.7, 0.0, 3.331, 0.000},
        {"shared LDS.128", 504.2, 1980, false, 0.0, 0.0, 0.000, 0.000},
        {"TMA from L2", 415.7, 1980, false, 0.0, 0.0, 9.452, 0.000},
        {"TMA from DRAM", 613.3, 1980, false, 0.0, 0.0, 4.151, 4.151},
        {"wgmma n256 random, half the SMs", 551.5, 1815, false, 478.2, 0.0, 0.000, 0.000},
        {"wgmma n256 random, quarter of the SMs", 327.1, 1815, false, 240.9, 0.0, 0.000, 0.000},
        {"wgmma n64 random", 665.3, 1530, true, 816.0, 0.0, 0.000, 0.000},
        {"wgmma n128 zeros", 266.2, 1695, false, 0.0, 910.5, 0.000, 0.000},
        {"wgmma n256 random, three quarters of the SMs", 686.1, 1755, true, 705.9, 0.0, 0.000, 0.000},
        {"wgmma n256 random + TMA 24", 679.1, 1512, true, 759.8, 0.0, 3.332, 0.000},
        {"TMA from DRAM, a tenth of the SMs", 288.2, 1980, false, 0.0, 0.0, 0.990, 0.990},
        {"TMA from L2, half the SMs", 326.7, 1980, false, 0.0, 0.0, 6.712, 0.000},
        {"shared LDS.128, half the SMs", 307.1, 1980, false, 0.0, 0.0, 0.000, 0.000},
        {"wgmma n256 zeros + TMA 48", 377.0, 1710, false, 0.0, 888.8, 3.898, 0.000}};
    std::vector<EnergyPoint> points;
    for (const Row& r : rows) {
        // An m64nNk16 instruction reads A of 64 x 16 and B of N x 16 elements of 2 bytes for 2 * 64 * N * 16 FLOP.
        const std::string label = r.label;
        const double n = label.find("n64") != label.npos ? 64 : label.find("n128") != label.npos ? 128 : 256;
        points.push_back({r.label, r.power_w, 1e6 * r.clock_mhz, r.held, 1e12 * r.tflops,
                          1e12 * r.zero_tflops, 1e12 * r.fill_tbps, 1e12 * r.dram_tbps,
                          1e12 * r.tflops * (64 + n) / (64 * n)});
    }
    return points;
}

}  // namespace rooftile
