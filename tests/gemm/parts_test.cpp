#include "rooftile/gemm/parts.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

// One wave of four tiles, 100 steps each. A step: products 512 cycles, L2 32768 B / 32 = 1024, shared memory
// 32768 B written, 16384 * 128 / 64 = 32768 + 16384 read, at 128 B/clk 256 and 384 cycles.
TiledGemm four_tiles(GemmHardware hw) {
    hw.store_latency = 300;
    hw.tile_turn = 500;
    hw.launch_seconds = 1e-6;
    GemmCandidate t = wgmma_tile(128, 128);
    t.store_boxes = 4, t.store_depth = 2;
    const GemmProblem p = gemm_problem(256, 256, 6400);
    return {.hw = hw,
            .tile = t,
            .problem = p,
            .step = step_cycles(hw, t, p),
            .waves = waves(hw, t, p),
            .dram = p.compulsory_bytes().value,
            .stages = 4};
}

TEST(GemmParts, EachPartTakesItsTermsAlong) {
    GemmHardware hw = made_up_gpu();
    hw.dram_bandwidth = 1e12;
    const TiledGemm g = four_tiles(hw);
    const auto us = [&](Ablation part) { return time_without(part, g).seconds * 1e6; };
    // Every part: turn 500 and launch 1 us. Store: 4 * 300 / 2 + 32768 / 64 = 1112 cycles. Fill: 700 + 1024.
    EXPECT_NEAR(us(Ablation::nothing), 102.4 + 0.5 + 1.112 + 1.724 + 1, 1e-9);
    EXPECT_NEAR(us(Ablation::products), 102.4 + 0.5 + 1.112 + 1.724 + 1, 1e-9);  // L2 binds all the same
    EXPECT_NEAR(us(Ablation::store), 102.4 + 0.5 + 1.724 + 1, 1e-9);
    // Products bind, and nothing fills the ring.
    EXPECT_NEAR(us(Ablation::loads), 51.2 + 0.5 + 1.112 + 1, 1e-9);
    // Twice the clock: half of all cycles.
    EXPECT_NEAR(time_without(Ablation::loads, g, 2e9).seconds * 1e6, (51.2 + 0.5 + 1.112) / 2 + 1, 1e-9);
}

TEST(GemmParts, WithoutProductsSharedMemoryIsWrittenAlone) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = hw.l2_port = 1e6;
    hw.dram_bandwidth = 1e15;
    hw.dram_latency = 0;
    hw.shared_bandwidth = 32;
    const TiledGemm g = four_tiles(hw);
    EXPECT_EQ(time_without(Ablation::nothing, g).step, 1536);   // 49152 B read at 32 B/clk
    EXPECT_EQ(time_without(Ablation::loads, g).step, 1536);     // still
    EXPECT_EQ(time_without(Ablation::products, g).step, 1024);  // 32768 B written
}

TEST(GemmParts, TheClockIsWhatPowerLeavesToTheRest) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 1e6;
    hw.l2_port = 100;  // 328 ns a step at any clock: products take longer up to 1.56 GHz
    hw.dram_bandwidth = 1e15;
    hw.top_hz = 4e9;
    hw.static_watts = 1;
    hw.sustained_watts = 9;
    hw.flop_joules = 2.0 / (4 * 4096e9);
    hw.fill_joules = 1e-12;
    hw.dram_joules = 0;
    hw.energy_exponent = 2;
    const TiledGemm g = four_tiles(hw);
    const auto clock = [&](Ablation part) { return time_without(part, g).clock_hz; };
    EXPECT_GT(clock(Ablation::loads), clock(Ablation::nothing));
    EXPECT_EQ(clock(Ablation::products), 4e9);
    EXPECT_EQ(clock(Ablation::nothing),
              gemm_time_under_power(g.hw, g.tile, g.problem, g.step, g.waves, g.dram, g.stages).clock_hz);
}

}  // namespace
}  // namespace rooftile
