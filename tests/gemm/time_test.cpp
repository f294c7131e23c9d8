#include "rooftile/gemm/time.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

TEST(GemmTime, IsTheSlowestOfComputeAndMemory) {
    GemmHardware hw = made_up_gpu();
    const GemmCandidate t = wgmma_tile(128, 256);
    const GemmProblem p = gemm_problem(512, 256, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);  // 4 tiles on 4 SMs
    // L2 binds: a CTA's A, B and C are 1638400 + 3276800 + 65536 B, at 32 B/clk 155648 cycles; fill 700 +
    // 1536.
    const GemmTime fast = gemm_time(hw, t, p, s, w, 0, 4);
    EXPECT_EQ(fast.bound, Bound::l2);
    EXPECT_DOUBLE_EQ(fast.seconds, (155648 + 2236) / 1e9);
    const GemmTime slow = gemm_time(hw, t, p, s, w, 32e9, 4);  // a second's worth of DRAM
    EXPECT_EQ(slow.bound, Bound::dram);
    EXPECT_NEAR(slow.seconds, 1, 1e-5);
}

TEST(GemmTime, PartsOfKShortenTheLoopAndExchange) {
    GemmHardware hw = made_up_gpu();
    hw.sms = 8;
    GemmCandidate t = wgmma_tile(128, 256);
    t.split_k = 2;
    const GemmProblem p = gemm_problem(512, 256, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    // As above, 4 tiles of 100 steps, now 50 steps on each of 8 SMs. Exchange: 131072 B of sums, half of them
    // read here: 196608 / 128 = 1536; half from the other: 65536 / 16 = 4096; 600 more. Each stores half of
    // C: 32768 B / 64 B/clk = 512. The cluster synchronises at both ends: 800.
    GemmTime time = gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4);
    EXPECT_EQ(time.exchange, 6232);
    EXPECT_DOUBLE_EQ(time.seconds, (50 * 1536 + 6232 + 512 + 2236 + 800) / 1e9);
    hw.sms = 4;  // two waves: the ring, which held the sums, fills again
    time = gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4);
    EXPECT_DOUBLE_EQ(time.seconds, (2 * (50 * 1536 + 6232 + 512) + 2 * 2236 + 800) / 1e9);
    hw.dsmem_bandwidth = std::nan("");
    time = gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4);
    EXPECT_TRUE(std::isnan(time.seconds));
    EXPECT_FALSE(std::isnan(time.least));  // still ranked
}

TEST(GemmTime, TooFewStagesLeaveTheLatencyOpen) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    const GemmCandidate t = wgmma_tile(64, 64);  // 128 cycles of products a step
    const GemmProblem p = gemm_problem(64, 64, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);
    // 16384 B / 64 = 256 cycles of transfer + 700 of latency, over one stage in flight
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 0, 2).step, 956);
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 0, 2).bound, Bound::latency);
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 0, 9).step, 256);
}

// 129 x 192 in four tiles of 128 x 128 that end with C: 256 x 256 products, and of each operand 256 lines twice. Operands whose M or
// N is contiguous keep their tiles, of which what stands outside is zeros; what is smaller than a tile is loaded as far as it reaches.
TEST(GemmTime, TilesThatEndWithCRepeatWhatTheyShare) {
    GemmHardware hw = made_up_gpu();
    const GemmCandidate t = wgmma_tile(128, 128);
    const auto lines = [&](const GemmProblem& p) { return operand_lines(hw, t, p, cluster_grid(p, 128, 128, 1, 1)); };
    const GemmProblem ragged = gemm_problem(129, 192, 64);
    EXPECT_EQ(lines(ragged).products, 129 * 192);
    EXPECT_EQ(lines(ragged).filled, 2 * (129 + 192));
    hw.edges_repeat = true;
    EXPECT_EQ(lines(ragged).products, 256 * 256);
    EXPECT_EQ(lines(ragged).filled, 2 * (256 + 256));
    EXPECT_EQ(lines(gemm_problem(100, 192, 64)).products, 100 * 256);
    EXPECT_EQ(lines(gemm_problem(136, 192, 64, Type::bf16, Major::mn, Major::k)).products, 136 * 256);
}

TEST(GemmTime, WhatL2HasComesSooner) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.dram_bandwidth = 1e12;
    hw.loaded_latency = 1000, hw.l2_loaded_latency = 600;
    const GemmCandidate t = wgmma_tile(64, 64);
    const GemmProblem p = gemm_problem(128, 128, 6400);  // 4 tiles on 4 SMs
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);
    // CTAs load 4 * 128 * 6400 * 2 B = 6553600, twice what A and B are: 32768 B more are C. 256 cycles of
    // transfer beside the latency; one stage in flight.
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 32768, 2).step, 256 + 600);
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 32768 + 3276800, 2).step, 256 + 800);
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 32768 + 6553600, 2).step, 256 + 1000);
    EXPECT_EQ(gemm_time(hw, t, p, s, w, 4e7, 2).step, 256 + 1000);
}

TEST(GemmTime, L2PassesWhatDramDeliversOnceMore) {
    GemmHardware hw = made_up_gpu();
    hw.dram_bandwidth = 1e12;
    hw.l2_parts = 2;
    const GemmCandidate t = wgmma_tile(128, 256);
    const GemmProblem p = gemm_problem(512, 256, 6400);  // 4 tiles, of one column: nobody shares A
    const StepCycles s = step_cycles(hw, t, p);
    // Loaded: 4 * 4915200 B; C 262144; of 100 MB read (512 * 0.5 + 256 * (1 - 1/16)) / 768 cross. 128 B/clk.
    const double crossing = (512 * 0.5 + 256 * 15 / 16.0) / 768;
    const double seconds = (4 * 4915200 + 262144 + crossing * 100e6) / 128e9 + (700 + 1536) / 1e9;
    EXPECT_NEAR(gemm_time(hw, t, p, s, waves(hw, t, p), 100e6 + 262144, 4).seconds, seconds, 1e-12);
}

TEST(GemmTime, FewSmsStreamFasterEach) {
    GemmHardware hw = made_up_gpu();
    hw.dram_per_sm = 20, hw.dram_per_sm_alone = 32;
    GemmCandidate t = wgmma_tile(64, 128);
    const auto step = [&](const GemmProblem& p) {
        return streamed_cycles(hw, t, p, cluster_grid(p, t.tile_m, t.tile_n, 1, 1));
    };
    const GemmProblem one = gemm_problem(64, 128, 6400);
    EXPECT_DOUBLE_EQ(step(one), 192 * 128 / 32.0);
    t.split_k = 2;  // two of four SMs
    EXPECT_DOUBLE_EQ(step(one), 192 * 128 / 32.0);
    t.split_k = 3;
    EXPECT_DOUBLE_EQ(step(one), 192 * 128 / 20.0);
    hw.dram_per_sm_alone = std::nan("");
    t.split_k = 1;
    EXPECT_DOUBLE_EQ(step(one), 192 * 128 / 20.0);
}

TEST(GemmTime, IsUnknownWithoutTheSmCount) {
    GemmHardware hw = made_up_gpu();
    hw.sms = std::nan("");
    const GemmCandidate t = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(512, 512, 512);
    const Waves w = waves(hw, t, p);
    EXPECT_TRUE(std::isnan(w.waves));
    EXPECT_TRUE(std::isnan(gemm_time(hw, t, p, step_cycles(hw, t, p), w, std::nan(""), 4).seconds));
}

TEST(GemmTime, TheLastWaveIsTimedByWhatItHolds) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    const GemmCandidate t = wgmma_tile(128, 128);
    // Five tiles of 100 steps on 4 SMs; a tile's part of the traffic is 6.4 MB of the 32 MB.
    const GemmProblem p = gemm_problem(640, 128, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);
    ASSERT_EQ(w.waves, 2);
    // Full wave: 4 * 6.4 MB at 32 GB/s = 800 us. Last: one tile, 200 us. Its own step is 512 cycles either
    // way, with 32768 B of C at 64 B/clk: 51.7 us. Fill: 700 + 512 cycles.
    EXPECT_NEAR(gemm_time(hw, t, p, s, w, 32e6, 4).seconds, 1000e-6 + 1212e-9, 1e-9);
}

TEST(GemmTime, OneSmStreamsNoFasterThanItsOwnLimit) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.dram_bandwidth = 1e12;
    hw.dram_per_sm = 20;
    const GemmCandidate t = wgmma_tile(64, 128);
    // One row of tiles: nobody shares B, A is shared by four: (64 / 4 + 128) * 128 = 18432 B a step.
    const GemmProblem row = gemm_problem(64, 512, 6400);
    const StepCycles s = step_cycles(hw, t, row);
    EXPECT_DOUBLE_EQ(gemm_time(hw, t, row, s, waves(hw, t, row), 0, 9).step, 921.6);
    EXPECT_EQ(gemm_time(hw, t, row, s, waves(hw, t, row), 0, 9).bound, Bound::dram);
    // Four rows and four columns: what one fetches the others find in L2.
    const GemmProblem square = gemm_problem(256, 512, 6400);
    EXPECT_DOUBLE_EQ(gemm_time(hw, t, square, s, waves(hw, t, square), 0, 9).step, 384);  // L2: 24576 / 64
    hw.dram_per_sm = std::nan("");
    EXPECT_DOUBLE_EQ(gemm_time(hw, t, row, s, waves(hw, t, row), 0, 9).step, 384);
}

TEST(GemmTime, OfALineThatSeveralReadOneIsTheFirst) {
    GemmHardware hw = made_up_gpu();
    hw.dram_per_sm = 20;
    GemmCandidate t = wgmma_tile(128, 128);
    const auto step = [&](const GemmProblem& p) {
        return streamed_cycles(hw, t, p, cluster_grid(p, t.tile_m, t.tile_n, 1, 1));
    };
    // Two rows of tiles, four columns: a quarter of A for each, and half of B.
    EXPECT_DOUBLE_EQ(step(gemm_problem(256, 512, 6400)), 128 * 32 / 20.0 + 128 * 64 / 20.0);
    // A pair that shares B by multicast reads it once, half each.
    t.cluster_m = 2;
    EXPECT_DOUBLE_EQ(step(gemm_problem(256, 512, 6400)), 128 * 32 / 20.0 + 128 * 64 / 20.0);
    hw.dram_per_sm = std::nan("");
    EXPECT_TRUE(std::isnan(step(gemm_problem(256, 256, 6400))));
}

// L2 keeps its own clock: the same seconds are fewer cycles of a slower SM.
TEST(GemmTime, L2AndItsPortAreTimedInSeconds) {
    GemmHardware hw = made_up_gpu();
    hw.dram_bandwidth = 1e12;
    const GemmProblem p = gemm_problem(256, 512, 6400);
    const GemmCandidate t = wgmma_tile(64, 128);
    const StepCycles s = step_cycles(hw, t, p);  // 192 rows of 128 B at 32 B/clk: 768 cycles at 1 GHz
    const Waves w = waves(hw, t, p);
    GemmTimer timer(hw, t, p, s, w, 9);
    EXPECT_DOUBLE_EQ(timer.at(1e9, 0).step, 768);
    EXPECT_DOUBLE_EQ(timer.at(0.5e9, 0).step, 384);
    hw.l2_port = 16;
    const StepCycles narrow = step_cycles(hw, t, p);
    EXPECT_DOUBLE_EQ(GemmTimer(hw, t, p, narrow, w, 9).at(0.5e9, 0).step, 768);
}

TEST(GemmTime, AStepHasALeastTime) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.step_floor = 190;
    const GemmCandidate t = wgmma_tile(64, 16);  // products 32, shared memory 80, L2 160 cycles a step
    const GemmProblem p = gemm_problem(64, 64, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    EXPECT_EQ(gemm_time(hw, t, p, s, waves(hw, t, p), 0, 20).step, 190);
    EXPECT_EQ(gemm_time(hw, t, p, s, waves(hw, t, p), 0, 20).bound, Bound::latency);
}

TEST(GemmTime, TheStoreAndTheTurnShow) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.store_latency = 300;
    hw.tile_turn = 500;
    GemmCandidate t = wgmma_tile(128, 128);
    t.store_boxes = 4, t.store_depth = 2;
    const GemmProblem p = gemm_problem(256, 256, 6400);
    const StepCycles s = step_cycles(hw, t, p);
    // 4 boxes * 300 / 2 + 32768 B / 64 B/clk = 1112
    EXPECT_EQ(store_cycles(hw, t, p, hw.store_latency), 1112);
    EXPECT_EQ(gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4).tile_cycles, 100 * 512 + 500 + 1112);
    t.epilogue_overlapped = true;
    EXPECT_EQ(gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4).tile_cycles, 100 * 512 + 500);
    t.turn_overlapped = true;  // with one tile a CTA there is nobody to multiply meanwhile
    EXPECT_EQ(gemm_time(hw, t, p, s, waves(hw, t, p), 0, 4).tile_cycles, 100 * 512 + 500);
    const GemmProblem two = gemm_problem(512, 256, 6400);
    EXPECT_EQ(gemm_time(hw, t, two, s, waves(hw, t, two), 0, 4).tile_cycles, 100 * 512 + 250);
    // An expression's issue slots show all the same: 128 * 128 elements by 128 lanes.
    GemmProblem finished = two;
    finished.epilogue = product_epilogue(two.m, two.n, two.c_type, 1, 0, "d = gelu(acc)", {});
    EXPECT_EQ(gemm_time(hw, t, finished, s, waves(hw, t, finished), 0, 4).tile_cycles, 100 * 512 + 250 + 128 * finished.epilogue->issue);
}

// What all SMs store at once bounds a wave though each tile's store is hidden.
TEST(GemmTime, StoresOfAllSMsBoundAWave) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.dram_bandwidth = 1e15;
    GemmCandidate t = wgmma_tile(128, 128);
    t.epilogue_overlapped = true;
    t.store_boxes = 4;
    const GemmProblem p = gemm_problem(256, 256, 64);  // one step of 512 cycles, C of a tile 32768 B
    const StepCycles s = step_cycles(hw, t, p);
    const auto time = [&](const GemmProblem& problem) {
        return gemm_time(hw, t, problem, s, waves(hw, t, problem), 0, 4);
    };
    hw.store_share = 8;  // 4096 cycles at 1 GHz
    const double whole_lines = time(p).seconds;
    EXPECT_EQ(time(p).bound, Bound::l2);
    hw.store_share = 4;
    EXPECT_NEAR(time(p).seconds - whole_lines, 4096e-9, 1e-15);
    hw.store_share = 8, hw.store_amid_sector = 4;
    EXPECT_EQ(time(p).seconds, whole_lines);
    GemmProblem amid = p;
    amid.ldc = 264;  // 528 B: every second row begins amid a sector
    EXPECT_NEAR(time(amid).seconds - whole_lines, 4096e-9, 1e-15);
    // By element a tile's own store takes as long, and shows.
    t.store_boxes = 0, t.by_element = true;
    hw.store_by_element = 2, hw.store_by_element_turned = 16;
    EXPECT_EQ(store_cycles(hw, t, p, std::nan("")), 32768 / 2);
    // By rows the GPU's rate counts for all SMs together; one tile leaves as fast as the port takes it.
    hw.store_by_rows = 8, t.by_rows = true;
    EXPECT_EQ(store_rate(hw, t, p), 8);
    EXPECT_EQ(store_cycles(hw, t, p, std::nan("")), 32768 / std::min(hw.l2_port, hw.shared_bandwidth));
    t.by_rows = false, t.turned = true;
    EXPECT_EQ(store_cycles(hw, t, p, std::nan("")), 32768 / 16);
}

// A GPU whose products take 2 J/s at 1 GHz beside 1 W at rest, held to 9 W: with energy as the clock squared,
// power 1 + 2 f^3 = 9 at f = 4^(1/3) = 1.587 GHz.
GemmHardware made_up_power() {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 1e6;
    hw.l2_port = 1e6;
    hw.dram_latency = 0;
    hw.top_hz = 4e9;
    hw.static_watts = 1;
    hw.sustained_watts = 9;
    hw.flop_joules = 2.0 / (4 * 4096e9);
    hw.fill_joules = hw.dram_joules = 0;
    hw.energy_exponent = 2;
    return hw;
}

TEST(GemmTimeUnderPower, TheClockIsWhatPowerLeaves) {
    GemmHardware hw = made_up_power();
    const GemmCandidate t = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(256, 256, 640000);  // one tile an SM, nothing but products
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);
    GemmTime time = gemm_time_under_power(hw, t, p, s, w, 0, 4);
    EXPECT_NEAR(time.clock_hz, std::cbrt(4) * 1e9, 1e6);
    EXPECT_NEAR(time.watts, 9, 0.01);
    EXPECT_NEAR(time.seconds, 10000 * 512 / (std::cbrt(4) * 1e9), 1e-5);
    hw.top_hz = 1.2e9;  // the limit is not reached: 1 + 2 * 1.2^3 = 4.456 W
    time = gemm_time_under_power(hw, t, p, s, w, 0, 4);
    EXPECT_EQ(time.clock_hz, 1.2e9);
    EXPECT_NEAR(time.watts, 4.456, 0.01);
}

TEST(GemmTimeUnderPower, FewerBytesGiveAHigherClock) {
    GemmHardware hw = made_up_power();
    hw.fill_joules = 1e-12;
    const GemmProblem p = gemm_problem(512, 512, 64000);
    const auto clock = [&](const GemmCandidate& t) {
        return gemm_time_under_power(hw, t, p, step_cycles(hw, t, p), waves(hw, t, p), 0, 4).clock_hz;
    };
    EXPECT_GT(clock(wgmma_tile(128, 256)), clock(wgmma_tile(128, 128)));
    hw.static_watts = hw.sustained_watts;  // no room for any work: not a limit to count with
    EXPECT_EQ(clock(wgmma_tile(128, 256)), hw.clock_hz);
    hw.static_watts = 1;
    hw.fill_joules = std::nan("");  // an energy is unknown: the sustained clock stands
    EXPECT_EQ(clock(wgmma_tile(128, 256)), hw.clock_hz);
    EXPECT_TRUE(std::isnan(gemm_time_under_power(hw, wgmma_tile(128, 256), p,
                                                 step_cycles(hw, wgmma_tile(128, 256), p),
                                                 waves(hw, wgmma_tile(128, 256), p), 0, 4)
                               .watts));
}

TEST(PowerLimit, TheHighestClockAtWhichJoulesFitIntoAReach) {
    GemmHardware hw = made_up_power();
    const double clock = hw.clock_hz;
    // 8 W of room for a second: 8 J leave the clock where it is, 4 J as energy as the clock squared its root.
    EXPECT_DOUBLE_EQ(PowerLimit(hw).clock(1, 8), clock);
    EXPECT_DOUBLE_EQ(PowerLimit(hw).clock(1, 4), std::sqrt(2) * clock);
    EXPECT_DOUBLE_EQ(PowerLimit(hw).clock(1, 32), clock / 2);
    EXPECT_EQ(PowerLimit(hw).clock(1, 0), hw.top_hz);
    EXPECT_EQ(PowerLimit(hw).clock(std::numeric_limits<double>::infinity(), 8), hw.top_hz);
    hw.dram_joules = std::nan("");
    EXPECT_EQ(PowerLimit(hw).clock(1, 4), clock);
}

// Work takes at most so long under power where it does at that clock, and power is held.
RC_GTEST_PROP(PowerLimit, WhatReachesDoesSoAtThatClock, ()) {
    GemmHardware hw = made_up_power();
    hw.sms = *rc::gen::inRange(1, 200);
    hw.top_hz = hw.clock_hz * *rc::gen::inRange(10, 30) / 10;
    hw.sustained_watts = *rc::gen::inRange(2, 40);
    hw.energy_exponent = *rc::gen::element(0.0, 0.0003, 0.2, 0.5, 1.0, 1.5, 2.0, 4.0);
    hw.l2_share = *rc::gen::inRange(10, 1000);
    hw.loaded_latency = *rc::gen::inRange(1, 2000);
    const GemmCandidate t = wgmma_tile(64 * *rc::gen::inRange(1, 5), 16 * *rc::gen::inRange(1, 17));
    const auto extent = [] { return *rc::gen::inRange<std::int64_t>(1, 20000); };
    const GemmProblem p = gemm_problem(extent(), extent(), extent());
    const StepCycles s = step_cycles(hw, t, p);
    const Waves w = waves(hw, t, p);
    const double dram = p.compulsory_bytes().value;
    GemmTimer timer(hw, t, p, s, w, 4);
    const PowerLimit power(hw);
    const double joules = timer.at(hw.clock_hz, dram).least * *rc::gen::inRange(1, 200) / 10;
    const GemmTime held = under_power(power, timer, joules, dram);
    RC_ASSERT(held.clock_hz <= hw.top_hz);
    RC_ASSERT(held.watts <= hw.sustained_watts);
    if (held.clock_hz < hw.top_hz) RC_ASSERT(held.watts > hw.sustained_watts * (1 - 1e-5));
    // Power is met within 1e-5, which is worth a share of the clock the larger the less joules grow with it.
    const double clock_error = hw.energy_exponent > 0 ? 1e-5 / hw.energy_exponent : 0;
    for (const double factor : {0.5, 0.9, 0.999, 1.001, 1.1, 2.0}) {
        if (std::abs(factor - 1) < clock_error) continue;
        const double reach = held.least * factor;
        RC_ASSERT((timer.at(power.clock(reach, joules), dram).least <= reach) == (factor > 1));
        if (factor > 1) RC_ASSERT(under_power(power, timer, joules, dram, reach).least == held.least);
        else RC_ASSERT(under_power(power, timer, joules, dram, reach).least > reach);
    }
}

// A made-up tiling of any shape is never faster than the floor says.
RC_GTEST_PROP(GemmTimeFloor, IsBelowEveryTime, ()) {
    GemmHardware hw = made_up_gpu();
    hw.sms = *rc::gen::inRange(1, 200);
    hw.sms_per_gpc = *rc::gen::inRange(0, 20);
    for (double& sms : hw.cluster_sms) sms = *rc::gen::inRange(0, int(hw.sms) + 1);
    const auto maybe = [](int most) {
        return *rc::gen::arbitrary<bool>() ? *rc::gen::inRange(1, most) : std::nan("");
    };
    hw.launch_seconds = maybe(9) * 1e-6;
    hw.loaded_latency = maybe(2000);
    hw.l2_loaded_latency = min_known(maybe(2000), hw.loaded_latency);
    hw.store_latency = maybe(1000);
    hw.tile_turn = maybe(1000);
    hw.step_floor = maybe(300);
    hw.dram_per_sm = maybe(100);
    hw.dram_per_sm_alone = max_known(maybe(100), hw.dram_per_sm);
    hw.l2_coalesced = *rc::gen::inRange(1, 4);
    hw.l2_parts = *rc::gen::inRange(1, 3);
    hw.store_share = maybe(100);
    hw.a_lines = {double(*rc::gen::inRange(1, 3)), double(*rc::gen::inRange(1, 4))};
    hw.b_lines = {double(*rc::gen::inRange(1, 3)), maybe(4)};
    GemmCandidate t = wgmma_tile(64 * *rc::gen::inRange(1, 5), 16 * *rc::gen::inRange(1, 17));
    t.cluster_m = *rc::gen::inRange(1, 3);
    t.cluster_n = *rc::gen::inRange(1, 3);
    t.split_k = *rc::gen::inRange(1, 9);
    t.grid_split_k = *rc::gen::inRange(1, 5);
    t.ctas_per_sm = *rc::gen::inRange(1, 4);
    t.epilogue_overlapped = *rc::gen::arbitrary<bool>();
    t.turn_overlapped = *rc::gen::arbitrary<bool>();
    t.store_boxes = *rc::gen::inRange(0, 5);
    const auto extent = [] { return *rc::gen::inRange<std::int64_t>(1, 20000); };
    const GemmProblem p = gemm_problem(extent(), extent(), extent());
    const Waves w = waves(hw, t, p);
    const int stages = *rc::gen::inRange(2, 20);
    RC_PRE(w.slots > 0);  // else no cluster of that size fits
    t.set_work(hw, p);
    t.exchange = exchange_cycles(hw, t);
    t.slots = *rc::gen::arbitrary<bool>() ? w.slots : unknown_number;
    const double clock = hw.clock_hz * *rc::gen::inRange(5, 20) / 10;
    GemmTimeFloor floors(hw, p);
    if (clock != hw.clock_hz) floors.run_at(clock);
    const double floor = floors.seconds(t, stages);
    RC_ASSERT(floor > 0);
    const double enough = floor * (*rc::gen::inRange(0, 10) + 0.5) / 5;  // never the floor itself
    const double hasty = floors.seconds(floors.resident(t, stages), t.k_parts(), {t.k_steps, t.streamed, t.exchange, t.slots}, enough);
    RC_ASSERT((hasty > enough) == (floor > enough));
    RC_ASSERT(hasty <= floor * (1 + 1e-12));
    const double of_any_residency = floors.seconds(t.tiles, ceil_div(p.k, t.tile_k), t.step);
    RC_ASSERT(of_any_residency > 0);
    for (double dram : {p.compulsory_bytes().value, 2 * p.compulsory_bytes().value, std::nan("")})
        for (const Order order : {Order::row, Order::column, Order::hilbert}) {
            const StepCycles simulated = step_cycles(hw, t, p, neighbours(cluster_grid(p, t), order, 1));
            const double least = GemmTimer(hw, t, p, simulated, w, stages).at(clock, dram).least;
            RC_ASSERT(floor <= least);
            RC_ASSERT(of_any_residency <= least);
        }
}

}  // namespace
}  // namespace rooftile
