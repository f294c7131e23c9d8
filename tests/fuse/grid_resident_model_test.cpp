#include "rooftile/fuse/grid_resident_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/fuse/made_up_rows.hpp"

namespace rooftile {
namespace {

/// 49 GB/s of DRAM either way and 98 of L2, no latency, 256 KiB of L2.
FuseHardware simple() {
    FuseHardware hw = four_sms(49e9);
    hw.l2_bandwidth = 98e9;
    hw.l2_all_bytes = 262144;
    hw.l2_bytes = 131072;
    hw.l2_port = 1e6;
    hw.sm_bandwidth = 1e6;
    return hw;
}

/// 64 KiB of 2 B an element.
Program two_rows() { return rows_of(2, 16384); }
constexpr FusedBytes bytes = {65536, 65536};

constexpr double reduction = 1000;  // ns
constexpr GridResidentLaunch four_ctas = {
    .vectors_per_thread = 1, .vector_width = 8, .threads = 128, .cluster = 2, .again_bytes = 2};

// 65536 B at 49 GB/s, 1337.47 ns, once read and once written, and a reduction. The second pass takes 131072 B of L2 as long:
// hidden.
TEST(FuseGridResidentModel, DramOnceAndAReduction) {
    const FuseFlow f = grid_resident_flow(simple(), two_rows(), two_passes(0), bytes, four_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_EQ(f.held, 1);
    EXPECT_EQ(f.dram_bytes, 131072);
    EXPECT_NEAR(f.time.seconds * 1e9, 2 * 1337.47 + reduction, 0.5);
}

// Of what the last pass reads and stores L2 holds a quarter: three quarters of the rows come again from DRAM; with an
// unknown size all do.
TEST(FuseGridResidentModel, WhatL2DoesNotHoldIsReadAgain) {
    FuseHardware hw = simple();
    hw.l2_all_bytes = 32768;
    const FuseFlow f = grid_resident_flow(hw, two_rows(), two_passes(0), bytes, four_ctas);
    EXPECT_EQ(f.held, 0.25);
    EXPECT_EQ(f.dram_bytes, 131072 + 49152);
    EXPECT_NEAR(f.time.seconds * 1e9, 2.75 * 1337.47 + reduction, 0.5);
    hw.l2_all_bytes = std::nan("");
    EXPECT_EQ(grid_resident_flow(hw, two_rows(), two_passes(0), bytes, four_ctas).dram_bytes, 3 * 65536);
}

// Three quarters wait in shared memory: of 16384 B that are read again L2 holds 32768 / 81920.
TEST(FuseGridResidentModel, WhatSharedMemoryHoldsIsNotReadAgain) {
    FuseHardware hw = simple();
    hw.l2_all_bytes = 32768;
    GridResidentLaunch held = four_ctas;
    held.held_share = 0.75;
    const FuseFlow f = grid_resident_flow(hw, two_rows(), two_passes(0), bytes, held);
    EXPECT_EQ(f.held, 0.4);
    EXPECT_NEAR(f.dram_bytes, 131072 + 16384 * 0.6, 1e-6);
    EXPECT_NEAR(f.time.seconds * 1e9, 2.15 * 1337.47 + reduction, 0.5);
    held.held_share = 1;
    EXPECT_EQ(grid_resident_flow(hw, two_rows(), two_passes(0), bytes, held).dram_bytes, 131072);
}

// Weights of 2 B an element come from DRAM once, 32768 B, and from L2 once a row: 196608 B of it, 2006.2 ns.
TEST(FuseGridResidentModel, EveryRowReadsItsWeightsFromL2) {
    ProgramWork work = two_passes(0);
    work.shared_loads = 1;
    work.shared_bytes = 2;
    work.other_bytes = 32768;
    FuseHardware hw = simple();
    GridResidentLaunch launch = four_ctas;
    const auto seconds = [&] {
        return grid_resident_flow(hw, two_rows(), work, {65536 + 32768, 65536}, launch).time.seconds * 1e9;
    };
    EXPECT_NEAR(seconds(), 2.5 * 1337.47 + reduction, 0.5);
    hw.l2_bandwidth = 49e9;
    EXPECT_NEAR(seconds(), 1337.47 + 196608 / 49.0 + reduction, 0.5);
    launch.rows_an_sm = 2;  // both rows have a CTA on each SM, with the same part of the weights
    EXPECT_NEAR(seconds(), 1337.47 + 163840 / 49.0 + reduction, 0.5);
}

// Tensors that only the last pass reads are in its DRAM time alone; a third pass is L2's.
TEST(FuseGridResidentModel, EpilogueOperandsAndFurtherPasses) {
    ProgramWork epilogue = two_passes(0);
    epilogue.full_bytes = 4;
    EXPECT_NEAR(
        grid_resident_flow(simple(), two_rows(), epilogue, {131072, 65536}, four_ctas).time.seconds * 1e9,
        3 * 1337.47 + reduction, 0.5);
    ProgramWork three = two_passes(0);
    three.readings = 3;
    three.reductions = three.reduction_rounds = 2;
    EXPECT_NEAR(grid_resident_flow(simple(), two_rows(), three, bytes, four_ctas).time.seconds * 1e9,
                2 * 1337.47 + 65536 / 98.0 + 2 * reduction, 0.5);
}

// Few bytes in flight: one warp an SM that waits 1000 cycles for each of 64 iterations; 5 rows are three CTAs on some SMs.
TEST(FuseGridResidentModel, LatencyShowsAndTheBusiestSmCounts) {
    FuseHardware hw = simple();
    hw.dram_latency = 1000;
    GridResidentLaunch one_warp = four_ctas;
    one_warp.threads = 32;
    const double waits = grid_resident_flow(hw, two_rows(), two_passes(0), bytes, one_warp).time.seconds;
    const double none = grid_resident_flow(simple(), two_rows(), two_passes(0), bytes, one_warp).time.seconds;
    EXPECT_NEAR((waits - none) * 1e9, 32 * 1000 + 1000, 0.5);  // the launch's first load among it
    Program five = two_rows();
    five.rows = 5;
    FuseHardware large = simple();
    large.l2_all_bytes = 1e9;
    const FuseFlow f = grid_resident_flow(large, five, two_passes(0), {5 * 32768, 5 * 32768}, four_ctas);
    EXPECT_EQ(f.resident, 3);
    EXPECT_NEAR(f.time.seconds * 1e9, 2 * 2.5 * 1337.47 * 1.2 + reduction, 0.5);
}

}  // namespace
}  // namespace rooftile
