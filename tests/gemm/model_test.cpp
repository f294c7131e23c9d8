#include "rooftile/gemm/model.hpp"

#include "rooftile/gemm/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

TEST(Arithmetic, UnknownDoesNotBind) {
    const double nan = std::nan("");
    EXPECT_EQ(min_known(nan, 3), 3);
    EXPECT_EQ(min_known(3, nan), 3);
    EXPECT_EQ(max_known(nan, 3), 3);
    EXPECT_EQ(max_known(3, nan), 3);
    EXPECT_TRUE(std::isnan(min_known(nan, nan)));
    for (double x : {0.0, 0.5, 1.0, 1.5, 1e15, 7e18}) {
        EXPECT_EQ(whole(x), std::floor(x));
        EXPECT_EQ(whole_up(x), std::ceil(x));
    }
    EXPECT_TRUE(std::isnan(whole_up(nan)));
}

GemmProblem large_problem() { return gemm_problem(4096, 4096, 4096); }

TEST(StepCycles, OfThe128x256Tile) {
    const StepCycles s = step_cycles(made_up_gpu(), wgmma_tile(128, 256), large_problem());
    EXPECT_EQ(s.tensor, 1024);  // 2 * 128 * 256 * 64 / 4096
    // read: A 128 * 64 * 2 = 16384, B twice 256 * 64 * 2 = 65536; 81920 B / 128 B/clk = 640, while
    // (128 + 256) * 64 * 2 = 49152 B are written
    EXPECT_EQ(s.shared, 640);
    EXPECT_EQ(s.l2, 49152 / 32.0);  // the share binds, not the port
}

TEST(StepCycles, NarrowTilesAreBoundBySharedMemory) {
    // wgmma m64n32: A 64 x 16 and B 32 x 16 are read for 64 x 32 x 16 products. Instruction reads alone: (64
    // + 32) * 16 * 2 B / 128 = 24 cycles for 2 * 64 * 32 * 16 / 4096 = 16 cycles of products: 67 % of peak.
    GemmCandidate t = wgmma_tile(64, 32);
    const StepCycles s = step_cycles(made_up_gpu(), t, large_problem());
    EXPECT_DOUBLE_EQ(s.tensor / s.shared, 16.0 / 24);
}

TEST(StepCycles, AClusterSharesOneOperand) {
    GemmCandidate t = wgmma_tile(128, 256);
    t.cluster_m = 2;  // two CTAs in one column of tiles share B: 128 + 128 rows for each
    EXPECT_EQ(step_cycles(made_up_gpu(), t, large_problem()).l2, 32768 / 32.0);
    t.cluster_m = 1;
    t.cluster_n = 2;
    EXPECT_EQ(step_cycles(made_up_gpu(), t, large_problem()).l2, (64 + 256) * 128 / 32.0);
}

TEST(Neighbours, FollowTheSchedule) {
    const auto next = [](std::int64_t rows, std::int64_t columns, Order order, int group) {
        const Neighbours n = neighbours({rows, columns}, order, group);
        return std::pair(n.a, n.b);
    };
    EXPECT_EQ(next(8, 5, Order::row, 1), std::pair(5.0, 1.0));     // a row of tiles reads the same A
    EXPECT_EQ(next(8, 5, Order::column, 1), std::pair(1.0, 8.0));  // a column the same B
    EXPECT_EQ(next(8, 5, Order::grouped, 3), std::pair(1.0, 3.0));
    EXPECT_EQ(next(8, 5, Order::serpentine, 16), std::pair(1.0, 8.0));  // no more rows than there are
    EXPECT_EQ(next(8, 5, Order::grouped, 1), std::pair(5.0, 1.0));      // bands of one row
    EXPECT_EQ(next(1, 5, Order::column, 1), std::pair(5.0, 1.0));       // one row: however it is simulated
    EXPECT_EQ(next(8, 1, Order::row, 1), std::pair(1.0, 8.0));
    EXPECT_EQ(next(8, 8, Order::hilbert, 1), std::pair(1.0, 1.0));  // it turns at every step
}

// One GPC: two neighbours meet in it, in clusters and without.
TEST(L2Rows, WhatNeighboursLoadAlikeReachesL2Less) {
    GemmHardware hw = made_up_gpu();
    hw.l2_coalesced = 1.6;
    hw.l2_multicast = 1.25;
    GemmCandidate t = wgmma_tile(128, 256);
    const Neighbours row{16, 1}, column{1, 32}, none{1, 1};
    EXPECT_EQ(l2_rows(hw, t, large_problem(), row).a, 80);  // 128 / 1.6
    EXPECT_EQ(l2_rows(hw, t, large_problem(), row).b, 256);
    EXPECT_EQ(l2_rows(hw, t, large_problem(), column).a, 128);
    EXPECT_EQ(l2_rows(hw, t, large_problem(), column).b, 160);  // 256 / 1.6
    EXPECT_EQ(l2_rows(hw, t, large_problem(), none).b, 256);
    t.cluster_m = 2;                                            // multicast is not merged again
    EXPECT_EQ(l2_rows(hw, t, large_problem(), column).b, 160);  // 256 / 2 * 1.25
    EXPECT_EQ(l2_rows(hw, t, large_problem(), row).a, 80);      // 16 clusters, 2 would do
    hw.sms_per_gpc = 0.4;  // ten GPCs: a row of 16 clusters has but one or two in each
    EXPECT_EQ(l2_rows(hw, t, large_problem(), row).a, 128);
    t.cluster_m = 1;  // CTAs stand side by side
    EXPECT_EQ(l2_rows(hw, t, large_problem(), row).a, 80);
    EXPECT_EQ(l2_rows(hw, t, gemm_problem(16, 4096, 64), row).a, 10);  // 16 rows are there
}

// Off the line a row costs L2 more, the more so where others load it too, and none of its loads are merged.
TEST(L2Rows, OffTheLineCostMoreAndAreNotMerged) {
    GemmHardware hw = made_up_gpu();
    hw.l2_coalesced = 2;
    hw.off_line[0] = {1.25, 1.5};
    hw.off_line[1] = {1.125, 1.25};
    hw.off_line[2] = {1, 0.75};
    const GemmCandidate t = wgmma_tile(128, 256);
    const auto l2 = [&](std::int64_t m, std::int64_t n, std::int64_t lda, std::int64_t ldb, PackedOperands packed = {}) {
        GemmProblem p = gemm_problem(m, n, 6400);
        p.lda = lda, p.ldb = ldb;
        const GemmHardware of = with_operands(hw, p, packed);
        return step_cycles(of, t, p, {16, 1}).l2 * 32 / 128;  // rows of 128 B, at 32 B/clk, that bring as much
    };
    EXPECT_EQ(l2(4096, 4096, 6400, 6400), 128 / 2 + 256);  // 12800 B: on the line
    EXPECT_EQ(l2(4096, 4096, 6408, 6400), 128 * 1.5 + 256);
    EXPECT_EQ(l2(4096, 4096, 6456, 6400), 128 * 1.5 + 256);  // 12912 B: 112 past a line, as 16 in multiples
    EXPECT_EQ(l2(4096, 4096, 6400, 6416), 128 / 2 + 256 * 1.25);
    EXPECT_EQ(l2(4096, 4096, 6432, 6432), 128 * 0.75 + 256 * 0.75);
    EXPECT_EQ(l2(4096, 256, 6408, 6400), 128 * 1.25 + 256);  // one column of tiles: nobody else reads A
    EXPECT_EQ(l2(4096, 4096, 6408, 6408, {.a = true}), 128 / 2 + 256 * 1.5);  // a copy is on the line
    EXPECT_EQ(l2(4096, 4096, 6408, 6408, {.a = true, .b = true}), 128 / 2 + 256);
    hw.off_line[0] = {};
    EXPECT_EQ(l2(4096, 4096, 6408, 6400), 128 / 2 + 256);  // unknown: as on the line
}

TEST(L2Rows, TheLeastIsThatOfTheBestOrder) {
    GemmHardware hw = made_up_gpu();
    hw.l2_coalesced = 1.6;
    hw.l2_multicast = 1.25;
    for (const auto& [m, n] : {std::pair(64, 256), {256, 64}, {128, 128}})
        for (const auto& [cluster_m, cluster_n] : {std::pair(1, 1), {2, 1}, {1, 2}}) {
            GemmCandidate t = wgmma_tile(m, n);
            t.cluster_m = cluster_m, t.cluster_n = cluster_n;
            const GemmProblem p = large_problem();
            const double row = step_cycles(hw, t, p, neighbours(cluster_grid(p, t), Order::row, 1)).l2;
            const double column = step_cycles(hw, t, p, neighbours(cluster_grid(p, t), Order::column, 1)).l2;
            EXPECT_DOUBLE_EQ(step_cycles(hw, t, p).l2, std::min(row, column)) << m << " " << cluster_m;
        }
}

TEST(L2Crossing, CountsReadersOnTheOtherSide) {
    GemmHardware hw = made_up_gpu();
    const GemmCandidate t = wgmma_tile(128, 256);
    EXPECT_EQ(crossing_share(hw, t, gemm_problem(256, 512, 64)), 0);
    // 2 x 2 tiles. A line of A or B has two readers: one of them at least is on the other half in three cases
    // of four.
    hw.l2_parts = 2;
    EXPECT_EQ(crossing_share(hw, t, gemm_problem(256, 512, 64)), 0.75);
    // One row of tiles reads B once, and half of its lines lie on the other side.
    EXPECT_EQ(crossing_share(hw, t, gemm_problem(128, 512, 64)), (0.75 * 128 + 0.5 * 512) / (128 + 512));
    EXPECT_NEAR(crossing_share(hw, t, gemm_problem(1 << 20, 1 << 20, 64)), 1, 1e-9);
}

TEST(StepCycles, APortTakesWhatItsSmAsksFor) {
    GemmHardware hw = made_up_gpu();
    hw.l2_share = 64;
    hw.l2_port = 40;
    hw.l2_coalesced = 2;
    GemmCandidate t = wgmma_tile(128, 128);
    // One operand reaches L2 half as often, 192 rows for each CTA; its port sees all 256.
    EXPECT_DOUBLE_EQ(step_cycles(hw, t, large_problem()).port, 256 * 128 / 40.0);
    EXPECT_DOUBLE_EQ(step_cycles(hw, t, large_problem()).l2, 192 * 128 / 64.0);
    t.cluster_m = 2;  // B comes in halves: 192
    EXPECT_DOUBLE_EQ(step_cycles(hw, t, large_problem()).port, 192 * 128 / 40.0);
    hw.l2_port = std::nan("");
    EXPECT_TRUE(std::isnan(step_cycles(hw, t, large_problem()).port));
    EXPECT_DOUBLE_EQ(step_cycles(hw, t, large_problem()).l2, 128 * 128 / 64.0);
}

TEST(Waves, CountTheTailAndWholeClusters) {
    GemmCandidate t = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(128 * 3, 128 * 3, 64);
    Waves w = waves(made_up_gpu(), t, p);
    EXPECT_EQ(w.tiles, 9);
    EXPECT_EQ(w.waves, 3);                 // 9 tiles on 4 SMs
    EXPECT_DOUBLE_EQ(w.efficiency, 0.75);  // 9 / 12
    t.cluster_m = 2;                       // 3 rows become 2 clusters of 2
    w = waves(made_up_gpu(), t, p);
    EXPECT_EQ(w.tiles, 12);
}

TEST(Waves, PartsOfKTakeSlotsAndClustersStandWithinAGpc) {
    GemmCandidate t = wgmma_tile(128, 128);
    const GemmProblem p = gemm_problem(128 * 3, 128 * 3, 6400);
    t.split_k = 2;
    Waves w = waves(made_up_gpu(), t, p);
    EXPECT_EQ(w.tiles, 9);
    EXPECT_EQ(w.waves, 5);                // 9 * 2 CTAs on 4 SMs
    EXPECT_DOUBLE_EQ(w.efficiency, 0.9);  // 18 / 20
    GemmHardware hw = made_up_gpu();
    hw.sms = 20;
    hw.sms_per_gpc = 10;  // a GPC holds two clusters of 4, and 2 of its SMs idle
    t.split_k = 4;
    w = waves(hw, t, p);
    EXPECT_EQ(w.slots, 16);
    EXPECT_EQ(w.waves, 3);  // 36 / 16
    hw.sms_per_gpc = std::nan("");
    EXPECT_EQ(waves(hw, t, p).slots, 20);
    t.split_k = 1;
    hw.sms_per_gpc = 3;
    EXPECT_EQ(waves(hw, t, p).slots, 20);  // single CTAs stand anywhere
}

TEST(Exchange, WritesAllReadsAShareFromEveryPart) {
    GemmCandidate t = wgmma_tile(128, 128);
    EXPECT_EQ(exchange_cycles(made_up_gpu(), t), 0);
    EXPECT_EQ(k_steps(t, gemm_problem(128, 128, 6370)), 100);
    t.split_k = 3;
    EXPECT_EQ(k_steps(t, gemm_problem(128, 128, 6370)), 34);  // the longest part of 100
    t.split_k = 4;
    // 65536 B of sums written, 16384 B read here, together 81920 / 128 = 640 cycles; 49152 B from three other
    // SMs / 16 = 3072; latency 200 and barrier 400
    EXPECT_EQ(exchange_cycles(made_up_gpu(), t), 640 + 3072 + 200 + 400);
}

TEST(Traffic, TilesAskAndClustersShare) {
    GemmCandidate t = wgmma_tile(128, 256);
    const GemmProblem p = gemm_problem(512, 768, 100);  // 4 x 3 tiles; A 102400 B, B 153600 B, C 786432 B
    EXPECT_EQ(asked_bytes(t, p), 3 * 102400.0 + 4 * 153600 + 786432);
    EXPECT_EQ(l2_bytes(t, p), asked_bytes(t, p));
    t.cluster_m = 2;
    EXPECT_EQ(l2_bytes(t, p), 3 * 102400.0 + 2 * 153600 + 786432);
    EXPECT_EQ(asked_bytes(t, p), 3 * 102400.0 + 4 * 153600 + 786432);
}

TEST(ScheduleTraffic, WhatFitsInL2IsReadOnce) {
    const GemmProblem p = gemm_problem(256, 256, 256);  // 3 * 128 KiB
    const ScheduleTraffic tile_schedule(made_up_gpu(), wgmma_tile(128, 128), p);
    for (Order order : {Order::row, Order::column, Order::grouped})
        EXPECT_EQ(tile_schedule.dram(order, 2), p.compulsory_bytes().value);
}

TEST(ScheduleTraffic, BandsReadBOnceEach) {
    // A and B of 4 MiB each against 1 MiB of L2; 16 x 16 tiles of 128, K = 1024, four CTAs at once.
    const GemmProblem p = gemm_problem(2048, 2048, 1024);
    const ScheduleTraffic tile_schedule(made_up_gpu(), wgmma_tile(128, 128), p);
    const double a = 2048 * 1024 * 2, c = 2048 * 2048 * 2;
    // Bands of one row: 256 KiB of A, a window of four columns, 1 MiB of B, and 128 KiB of C do not fit: A
    // again for each of 4 windows, B for each of 16 bands.
    EXPECT_EQ(tile_schedule.dram(Order::grouped, 1), 4 * a + 16 * a + c);
    // Bands of two rows: 512 KiB of A, two columns, 512 KiB, of B, and 128 KiB of C pass 1 MiB too: 8
    // windows.
    EXPECT_EQ(tile_schedule.dram(Order::grouped, 2), 8 * a + 8 * a + c);
    GemmHardware more = made_up_gpu();
    more.l2_bytes = (1 << 20) + (1 << 17);  // with room for that C: A once, B 8 times
    EXPECT_EQ(ScheduleTraffic(more, wgmma_tile(128, 128), p).dram(Order::grouped, 2), a + 8 * a + c);
    // Bands of four rows: 1 MiB of A and a window of one column do not fit: A again for each of 16 columns.
    EXPECT_EQ(tile_schedule.dram(Order::grouped, 4), 16 * a + 4 * a + c);
}

TEST(ScheduleTraffic, NeverBelowTheLowerBound) {
    GemmHardware hw = made_up_gpu();
    for (int m : {100, 1000, 5000})
        for (int n : {100, 3000})
            for (int k : {64, 4096})
                for (int group : {1, 2, 8})
                    for (Order order : {Order::row, Order::column, Order::grouped}) {
                        const GemmProblem p = gemm_problem(m, n, k);
                        EXPECT_GE(ScheduleTraffic(hw, wgmma_tile(128, 128), p).dram(order, group),
                                  p.compulsory_bytes().value);
                        EXPECT_GE(ScheduleTraffic(hw, wgmma_tile(128, 128), p).dram(order, group),
                                  dram_lower_bound_bytes(hw, p));
                    }
}

TEST(LowerBound, IsTheGreaterOfBothForms) {
    GemmHardware hw = made_up_gpu();
    const GemmProblem small = gemm_problem(128, 128, 128);
    EXPECT_EQ(dram_lower_bound_bytes(hw, small), small.compulsory_bytes().value);
    const GemmProblem large = gemm_problem(65536, 65536, 65536);
    const double s = (1 << 21) / 2.0, mnk = std::pow(65536.0, 3);
    // Sums in C's own type; the other form, in fp32: sqrt(2) of the reuse, less 2 B of every element of C.
    const double narrow = (2 * mnk / std::sqrt(s) - 2 * s) * 2;
    const double wide = 2 * mnk * std::sqrt(2.0 * 2 * 4 / (1 << 21)) - 2 * (1 << 21) - 2 * 65536.0 * 65536;
    EXPECT_EQ(dram_lower_bound_bytes(hw, large), std::max(narrow, wide));
    hw.on_chip_bytes = std::nan("");
    EXPECT_EQ(dram_lower_bound_bytes(hw, large), large.compulsory_bytes().value);  // sound without S
}

TEST(Epilogue, WaitsForOperandsThatHaveAnElementForEachOfC) {
    GemmHardware hw = made_up_gpu();
    hw.loaded_latency = 1000, hw.l2_loaded_latency = 600;
    GemmCandidate tile = wgmma_tile(128, 128);
    tile.store_boxes = 8, tile.store_depth = 2;
    EXPECT_EQ(operand_wait_cycles(hw, tile), 0);
    tile.operand_staged = true;
    EXPECT_EQ(operand_wait_cycles(hw, tile), 3000);  // six boxes behind the first two, two at once, 1000 cycles each
    tile.store_boxes = 2;
    EXPECT_EQ(operand_wait_cycles(hw, tile), 0) << "both are asked for beside the first products";
    tile.operand_staged = false, tile.operand_turns = 4;
    EXPECT_EQ(operand_wait_cycles(hw, tile), 2400);
    hw.l2_loaded_latency = std::nan("");
    EXPECT_EQ(operand_wait_cycles(hw, tile), 800) << "the stated latency where none was measured under load";
}

TEST(Epilogue, OfPairsStoresHalfAndFinishesHalf) {
    GemmProblem plain = large_problem(), pairs = large_problem();
    pairs.epilogue = product_epilogue(pairs.m, pairs.n, pairs.c_type, 1, 0, "d = silu(gate) * up", {}, Scales::none, 1, 0, Pairs::split);
    const GemmHardware hw = made_up_gpu();
    const GemmCandidate tile = wgmma_tile(128, 256);
    // 128 * 256 * 2 B through a port of 64 B/clk; of pairs half, and the expression of 128 * 128 elements by 128 lanes.
    EXPECT_EQ(store_cycles(hw, tile, plain, 0), 1024);
    EXPECT_EQ(store_cycles(hw, tile, pairs, 0), 512 + 128 * 128 / 128.0 * pairs.epilogue->issue);
    EXPECT_EQ(pairs.c_bytes(), plain.c_bytes() / 2);
}

}  // namespace
}  // namespace rooftile
