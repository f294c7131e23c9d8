#include "rooftile/gemm/ladder_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

// A made-up GPU of ten SMs whose L2 holds all there is, so that every miss is compulsory.
GemmHardware machine() {
    GemmHardware hw{};
    hw.sms = 10;
    hw.clock_hz = hw.sustained_hz = 1e9;
    hw.flops_per_cycle = 4096;
    hw.issue_slots = 4;
    hw.shared_bandwidth = 128;
    hw.l2_port = 64;
    hw.l2_share = 32;
    hw.l2_bytes = 1 << 30;
    hw.l2_latency = 200;
    hw.dram_latency = 600;
    hw.tma_latency = 100;
    hw.dram_bandwidth = 1e15;
    hw.shared_per_sm = 233472;
    hw.shared_reserved = 1024;
    return hw;
}

TEST(LadderConfig, FitsHopper) {
    for (int i = 0; i < rung_count; ++i) {
        const LadderConfig c = ladder_config(static_cast<Rung>(i));
        EXPECT_LE(c.shared_bytes(), 227 * 1024) << i;
        EXPECT_LE(c.threads() * c.ctas_per_sm, 2048) << i;
    }
    // Four stages of (128 + 256) * 64 * 2 B, two consumers with two epilogue tiles of 64 * 64 * 2 B, eight barriers of
    // 8 B.
    EXPECT_EQ(ladder_config(Rung::full).shared_bytes(), 1024 + 4 * 49152 + 4 * 8192 + 64);
}

// A warp covers 2 x 16 elements: 18 lines, a cycle each. 8 warps of a CTA: 144 cycles; 5 instructions each of
// 4 a cycle: 10; 256 multiply-adds at 256 FLOP/clk: 2; (16 + 16) rows of 2 B at 32 B/clk: 2.
TEST(LadderStep, NaiveLoadsALineACycle) {
    GemmHardware hw = machine();
    hw.flops_per_cycle = 256;
    const LadderStep s = ladder_step(hw, Rung::naive);
    EXPECT_EQ(s.math, 2);
    EXPECT_EQ(s.issue, 10);
    EXPECT_EQ(s.shared, 144);
    EXPECT_EQ(s.l2, 2);
}

// A step of 16: 128 * 128 * 16 * 2 FLOP / 256 = 2048. Each of 256 threads: 16 * 64 products, 16 * 4 reads of
// 16 B, 16 elements converted and stored, 2 loads: 1122 instructions in 8 warps, 4 a cycle: 2244. Shared
// memory: 256 lines loaded, 16 KiB stored, 16384 / 8 * 2 * 64 B read: 32768 + 16384 + 262144 = 311296 B / 128
// = 2432.
TEST(LadderStep, SharedIsBoundByItsPort) {
    GemmHardware hw = machine();
    hw.flops_per_cycle = 256;
    const LadderStep s = ladder_step(hw, Rung::shared);
    EXPECT_EQ(s.math, 2048);
    EXPECT_EQ(s.issue, 2244);
    EXPECT_EQ(s.shared, 2432);
    EXPECT_EQ(s.l2, 256 * 16 * 2 / 32.0);
}

// 128 * 128 * 64 * 2 FLOP at mma.sync's 2576 is 814.1; 32 KiB written; A read for each of 4 columns of warps,
// B for each of 2 rows: 64 + 32 KiB: 128 KiB / 128 = 1024.
TEST(LadderStep, TensorSyncReadsSharedMemoryTooOften) {
    GemmHardware hw = machine();
    hw.flops_per_cycle = 2576;
    const LadderStep s = ladder_step(hw, Rung::tensor_sync);
    EXPECT_NEAR(s.math, 814.1, 0.05);
    EXPECT_EQ(s.issue, 0);
    EXPECT_EQ(s.shared, 1024);
    EXPECT_EQ(s.l2, 1024);
}

// wgmma reads A once and B for each of two rows of 64: 32 written + 16 + 32 read = 80 KiB / 128 = 640.
TEST(LadderStep, WgmmaReadsSharedMemoryItself) {
    const LadderStep s = ladder_step(machine(), Rung::wgmma_tma);
    EXPECT_EQ(s.math, 512);
    EXPECT_EQ(s.shared, 640);
}

// 128 x 256 x 64: 1024 cycles of math; 48 KiB written, 16 + 64 read: 128 KiB / 128 = 1024. L2 gives 48 KiB at
// 32 B/clk; where two CTAs share B, 32 KiB.
TEST(LadderStep, AWiderTileAndThenAClusterAskL2ForLess) {
    const LadderStep five = ladder_step(machine(), Rung::pipelined);
    EXPECT_EQ(five.math, 1024);
    EXPECT_EQ(five.shared, 1024);
    EXPECT_EQ(five.l2, 1536);
    EXPECT_EQ(ladder_step(machine(), Rung::full).l2, 1024);
}

// 40 x 10 tiles of 128 x 128 on ten SMs: 40 each. All of A and B is read once from DRAM: 50 * 128 * 1024 * 2
// B of the 2 * 400 * 128 * 1024 * 2 B that tiles ask for: 1 in 16 waits for DRAM: 200 + 400 / 16 + 100 = 325
// cycles. A step alone: 325 + 1024 + 640 = 1989; three CTAs: 663 < 1024 of L2. 40 tiles * 16 steps * 1024.
TEST(LadderTime, ThreeCtasFillEachOthersGaps) {
    const GemmProblem p = gemm_problem(40 * 128, 10 * 128, 1024);
    const LadderTime t = ladder_time(machine(), Rung::wgmma_tma, p);
    EXPECT_EQ(t.tiles_per_sm, 40);
    EXPECT_EQ(t.ctas_per_sm, 3);
    EXPECT_DOUBLE_EQ(t.latency, 325);
    EXPECT_DOUBLE_EQ(t.series, 1989);
    EXPECT_EQ(t.bound, Bound::l2);
    EXPECT_DOUBLE_EQ(t.seconds, 40 * 16 * 1024 / 1e9);
}

// Ten tiles, one an SM: no neighbour fills the gap. All of A and B is read once, (10 + 1) of 20 reads miss:
// 200 + 400 * 0.55 + 100 = 520. A step is 520 + 1024 + 640 = 2184; 16 of them and 32 KiB stored at 64 B/clk.
TEST(LadderTime, OneCtaAloneLoadsThenMultiplies) {
    const GemmProblem p = gemm_problem(10 * 128, 128, 1024);
    const LadderTime t = ladder_time(machine(), Rung::wgmma_tma, p);
    EXPECT_EQ(t.ctas_per_sm, 1);
    EXPECT_DOUBLE_EQ(t.latency, 520);
    EXPECT_EQ(t.bound, Bound::latency);
    EXPECT_DOUBLE_EQ(t.seconds, (16 * 2184 + 512) / 1e9);
}

// With twice the L2: 10 tiles of 128 x 256, 64 steps. Half of 10 + 2 (in 128 rows) of 30 miss: 0.4: 460. A
// ring of four: (460 + 768 + 1024) / 4 < 1024. First load 1228, store 65536 / 64 = 1024.
TEST(LadderTime, ARingHidesTheLatencyButNotTheFirstLoad) {
    GemmHardware hw = machine();
    hw.l2_share = 64;
    const GemmProblem p = gemm_problem(10 * 128, 256, 4096);
    const LadderTime t = ladder_time(hw, Rung::pipelined, p);
    EXPECT_DOUBLE_EQ(t.latency, 460);
    EXPECT_EQ(t.bound, Bound::tensor);
    EXPECT_DOUBLE_EQ(t.seconds, (64 * 1024 + 1228 + 1024) / 1e9);
}

// 30 tiles of one cluster row... each cluster of two CTAs has 2 x 3 tiles: the persistent kernel waits for
// one first load, the other for three. 3 x (64 x 1024 + 1024) + the first load.
TEST(LadderTime, APersistentGridWaitsForOneFirstLoad) {
    GemmHardware hw = machine();
    hw.l2_share = 64;
    const GemmProblem p = gemm_problem(10 * 128, 3 * 256, 4096);
    const LadderTime five = ladder_time(hw, Rung::pipelined, p), six = ladder_time(hw, Rung::full, p);
    ASSERT_EQ(five.tiles_per_sm, 3);
    ASSERT_EQ(six.tiles_per_sm, 3);
    const double fill_five = five.latency + 768, fill_six = six.latency + 512;
    EXPECT_NEAR(five.seconds * 1e9, 3 * (64 * 1024 + 1024 + fill_five), 1e-3);
    EXPECT_NEAR(six.seconds * 1e9, 3 * (64 * 1024 + 1024) + fill_six, 1e-3);
}

TEST(LadderTime, DramBindsWhereItIsSlow) {
    GemmHardware hw = machine();
    hw.dram_bandwidth = 1e9;
    const GemmProblem p = gemm_problem(1280, 1280, 1280);
    const LadderTime t = ladder_time(hw, Rung::full, p);
    EXPECT_EQ(t.bound, Bound::dram);
    EXPECT_DOUBLE_EQ(t.seconds, 3 * 1280 * 1280 * 2 / 1e9);  // all of it fits L2: each operand once
}

TEST(PredictRung, TheLadderClimbs) {
    for (const char* id : {"h100-sxm", "h200-sxm"})
        for (std::int64_t size : {4096, 8192}) {
            double before = INFINITY;
            for (int i = 0; i < rung_count; ++i) {
                const LadderPrediction p =
                    predict_rung(machine_by_id(id), static_cast<Rung>(i), gemm_problem(size, size, size));
                ASSERT_TRUE(p.time_us) << id << i << p.reason;
                EXPECT_LE(*p.time_us, before) << id << ' ' << name_of(static_cast<Rung>(i));
                EXPECT_GT(p.reason.size(), 20u);
                before = *p.time_us;
            }
        }
}

// h200-sxm, 4096^3. Rung 1: 65536 tiles on 132 SMs are 497, of 4096 steps of 144 cycles at 1.98 GHz, and the
// launch. Rungs 4 to 6 multiply by wgmma, which power holds to 1.33 GHz; rung 5: 512 tiles are 4 a SM.
TEST(PredictRung, ClocksFollowTheMatrixUnits) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem p = gemm_problem(4096, 4096, 4096);
    const LadderPrediction naive = predict_rung(h200, Rung::naive, p);
    EXPECT_NEAR(*naive.time_us,
                497 * 4096 * 144 / 1.98e3 + 1e6 * h200.number<Seconds>("launch.gap_stream")->value, 0.01);
    EXPECT_EQ(*naive.bound, Bound::shared);
    EXPECT_NE(naive.reason.find("18 lines"), std::string::npos);
    const LadderPrediction five = predict_rung(h200, Rung::pipelined, p);
    EXPECT_NEAR(*five.clock_mhz, 1330, 1e-6);
    EXPECT_GT(*five.time_us, 4 * 64 * 1024 / 1.33e3);
    EXPECT_NEAR(*predict_rung(h200, Rung::wgmma_tma, p).clock_mhz, 1330, 1e-6);
    EXPECT_NEAR(*predict_rung(h200, Rung::tensor_sync, p).clock_mhz, 1980, 1e-6);
}

TEST(PredictRung, WhatIsUnknownIsNamed) {
    const GemmProblem p = gemm_problem(4096, 4096, 4096);
    Machine h200 = machine_by_id("h200-sxm");
    h200.facts.erase("l2.bandwidth");
    const LadderPrediction rung = predict_rung(h200, Rung::full, p);
    EXPECT_FALSE(rung.time_us);
    EXPECT_EQ(rung.unknown, std::vector<std::string>{"l2.bandwidth"});
    EXPECT_EQ(rung.reason, "unknown: l2.bandwidth");
    const LadderPrediction old = predict_rung(machine_by_id("a100-80-sxm"), Rung::pipelined, p);
    EXPECT_FALSE(old.time_us);
    EXPECT_EQ(old.reason, "a100-80-sxm has no wgmma");
    EXPECT_TRUE(predict_rung(machine_by_id("a100-80-sxm"), Rung::tensor_sync, p).time_us);
}

// At one clock: where a rung reaches the power limit its clock falls.
TEST(LadderTime, MoreL2NeverTakesLonger) {
    const GemmProblem p = gemm_problem(4096, 4096, 4096);
    for (int i = 0; i < rung_count; ++i) {
        double before = INFINITY;
        for (double share : {1.0, 8.0, 32.0, 37.0, 64.0, 1e3}) {
            GemmHardware hw = machine();
            hw.l2_share = share;
            const double time = ladder_time(hw, static_cast<Rung>(i), p).seconds;
            ASSERT_GT(time, 0);
            EXPECT_LE(time, before) << i << ' ' << share;
            before = time;
        }
    }
}

TEST(LadderObstacle, NamesTheRule) {
    EXPECT_EQ(obstacle_of(Rung::naive, gemm_problem(1, 1, 1)), "");
    EXPECT_NE(obstacle_of(Rung::shared, gemm_problem(64, 64, 100)).find("K is 100"), std::string::npos);
    EXPECT_EQ(obstacle_of(Rung::wgmma_tma, gemm_problem(64, 67, 104)), "");
    EXPECT_NE(obstacle_of(Rung::pipelined, gemm_problem(64, 67, 104)).find("N is 67"), std::string::npos);
    EXPECT_NE(obstacle_of(Rung::naive, gemm_problem(64, 64, 64, Type::bf16, Major::mn)), "");
    GemmProblem padded = gemm_problem(64, 64, 64);
    padded.ldc = 72;
    EXPECT_NE(obstacle_of(Rung::naive, padded).find("ldc"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
