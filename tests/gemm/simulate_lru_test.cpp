#include "rooftile/gemm/simulate_lru.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "rooftile/error.hpp"
#include "rooftile/gemm/simulate_blocks.hpp"
#include "tests/gemm/brute_force.hpp"
#include "tests/gemm/random_schedule.hpp"

namespace rooftile {
namespace {

// 4 x 4 tiles of 2 x 2, K = 4 in steps of 2, one byte an element, two clusters in flight, row by row.
// A block of A or B: 2 x 2 = 4 B. A tile row of A: 8 B. A tile of C: 4 B.
TileSchedule sixteen_tiles() {
    return {.m = 8,
            .n = 8,
            .k = 4,
            .a_bytes = 1,
            .b_bytes = 1,
            .c_bytes = 1,
            .tile_m = 2,
            .tile_n = 2,
            .tile_k = 2,
            .clusters = 2,
            .order = Order::row};
}

TEST(SimulateLru, ByHand) {
    // Nothing stays: every round (of 8) reads one row of A and two columns of B, 8 + 16 B.
    GemmTraffic t = simulate_lru(sixteen_tiles(), 0);
    EXPECT_EQ(t.dram_a_bytes, 8 * 8);
    EXPECT_EQ(t.dram_b_bytes, 8 * 16);
    EXPECT_EQ(t.dram_c_bytes, 64);
    // In each step one CTA asks for A, and each for its own B: the other waits for A as well.
    EXPECT_EQ(t.a_hits, 16);
    EXPECT_EQ(t.b_hits, 0);
    EXPECT_EQ(t.both_hits, 0);
    EXPECT_EQ(t.dram_waits, 32);
    // A row of A is used in rounds 2i and 2i + 1. In between come, to the same block again, all of A's row,
    // two columns of B beside it and of the next round what came first, and 2 tiles of C: at the first
    // position of K in the second round 8 (A) + 16 (B) + 8 (C) = 32 B.
    t = simulate_lru(sixteen_tiles(), 32);
    EXPECT_EQ(t.dram_a_bytes, 4 * 8);
    EXPECT_EQ(t.dram_b_bytes, 8 * 16);
    // In four second rounds both CTAs find it in both steps, in four first rounds one of them.
    EXPECT_EQ(t.a_hits, 4 * 2 * 2 + 4 * 2);
    EXPECT_EQ(simulate_lru(sixteen_tiles(), 31).dram_a_bytes, 8 * 8);
    // Columns of B come again two rounds later, with another row of A: in rounds 2, 4, 6 column 0 finds at
    // its second position 24 B of the first (all four columns and two rows), 24 of the second and C of two
    // rounds, 16: 64 B. The nearest is column 3 in rounds 3, 5, 7, which two columns and one row came after:
    // at its second position 20 of the first, 20 of the second and 16 of C, 56 B.
    EXPECT_EQ(simulate_lru(sixteen_tiles(), 55).dram_b_bytes, 8 * 16);
    EXPECT_LT(simulate_lru(sixteen_tiles(), 56).dram_b_bytes, 8 * 16);
    EXPECT_GT(simulate_lru(sixteen_tiles(), 63).dram_b_bytes, 32);
    EXPECT_EQ(simulate_lru(sixteen_tiles(), 64).dram_b_bytes, 32);
}

void expect_equal(const GemmTraffic& t, const BruteForce& b) {
    RC_ASSERT(t.dram_a_bytes == b.read[0]);
    RC_ASSERT(t.dram_b_bytes == b.read[1]);
    RC_ASSERT(t.dram_c_bytes + t.dram_operand_bytes == b.written);
    RC_ASSERT(t.steps == b.steps);
    RC_ASSERT(t.a_hits == b.hits[0]);
    RC_ASSERT(t.b_hits == b.hits[1]);
    RC_ASSERT(t.both_hits == b.hits[2]);
    RC_ASSERT(t.dram_waits == b.waits);
}

RC_GTEST_PROP(SimulateLru, EqualsBruteForce, ()) {
    const TileSchedule g = drawn_schedule();
    BruteForce brute{.g = g, .capacity = drawn_capacity(g), .used = {}};
    brute.run();
    expect_equal(simulate_lru(g, brute.capacity), brute);
    expect_equal(simulate_blocks(g, brute.capacity), brute);
}

// The two simulators share the tile schedule and nothing else; RapidCheck's hundred cases begin small, these do not.
TEST(SimulateLru, EqualsTheSimulationBlockByBlock) {
    std::mt19937 random(20261121);
    const auto number = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    for (int i = 0; i < 20000; ++i) {
        const TileSchedule g = random_schedule(number);
        const std::int64_t capacity = number(0, int(all_bytes(g) * 5 / 4) + 1);
        const GemmTraffic t = simulate_lru(g, capacity);
        ASSERT_EQ(t, simulate_blocks(g, capacity)) << "case " << i;
        if (i % 10 != 0) continue;
        BruteForce brute{.g = g, .capacity = capacity, .used = {}};
        brute.run();
        ASSERT_EQ(t.dram_a_bytes, brute.read[0]) << "case " << i;
        ASSERT_EQ(t.dram_b_bytes, brute.read[1]) << "case " << i;
        ASSERT_EQ(t.both_hits, brute.hits[2]) << "case " << i;
        ASSERT_EQ(t.dram_waits, brute.waits) << "case " << i;
    }
}

RC_GTEST_PROP(SimulateLru, MoreCapacityNeverReadsMore, ()) {
    const TileSchedule g = drawn_schedule();
    const std::int64_t capacity = drawn_capacity(g);
    RC_ASSERT(simulate_lru(g, capacity + 1).dram_bytes() <= simulate_lru(g, capacity).dram_bytes());
}

RC_GTEST_PROP(SimulateLru, AnEndlessL2ReadsEverythingOnce, ()) {
    const TileSchedule g = drawn_schedule();
    const GemmTraffic t = simulate_lru(g, all_bytes(g));
    RC_ASSERT(t.dram_a_bytes == g.m * g.k * g.a_bytes);
    RC_ASSERT(t.dram_b_bytes == g.n * g.k * g.b_bytes);
    RC_ASSERT(t.dram_c_bytes == g.m * g.n * g.c_bytes);
    RC_ASSERT(t.dram_operand_bytes == g.m * g.n * g.operand_bytes);
}

RC_GTEST_PROP(SimulateLru, NoL2ReadsWhatEveryRoundAsksFor, ()) {
    TileSchedule g = drawn_schedule();
    g.clusters = 1;
    const GemmTraffic t = simulate_lru(g, 0);
    RC_ASSERT(t.dram_a_bytes + t.dram_b_bytes == t.l2_read_bytes);
    RC_ASSERT(t.a_hits == 0 && t.b_hits == 0);
}

RC_GTEST_PROP(SimulateLru, LevelsOnlyShrinkTowardsDram, ()) {
    const TileSchedule g = drawn_schedule();
    const GemmTraffic t = simulate_lru(g, drawn_capacity(g));
    RC_ASSERT(t.sm_bytes >= t.l2_read_bytes);
    RC_ASSERT(t.l2_read_bytes >= t.dram_a_bytes + t.dram_b_bytes);
    RC_ASSERT(t.both_hits <= std::min(t.a_hits, t.b_hits));
    RC_ASSERT(std::max(t.a_hits, t.b_hits) <= t.steps);
}

// The same CTAs alone, or two of them as a cluster that shares an operand.
RC_GTEST_PROP(SimulateLru, MulticastNeverRaisesWhatLeavesL2, ()) {
    TileSchedule alone = drawn_schedule();
    alone.cluster_m = alone.cluster_n = 1;
    TileSchedule cluster = alone;
    (*rc::gen::arbitrary<bool>() ? cluster.cluster_m : cluster.cluster_n) = *rc::gen::inRange(2, 4);
    RC_ASSERT(simulate_lru(cluster, 0).l2_read_bytes <= simulate_lru(alone, 0).l2_read_bytes);
}

RC_GTEST_PROP(SimulateLru, DramBytesAlone, ()) {
    const TileSchedule g = drawn_schedule();
    const std::int64_t capacity = drawn_capacity(g), all = simulate_lru(g, capacity).dram_bytes();
    RC_ASSERT(lru_dram_bytes(g, capacity) == all);
    RC_ASSERT(lru_dram_bytes(g, capacity, all) == all);
    const std::int64_t cut = lru_dram_bytes(g, capacity, all - 1);
    RC_ASSERT(cut > all - 1 && cut <= all);
}

RC_GTEST_PROP(SimulateLru, TilesAddUp, ()) {
    const TileSchedule g = drawn_schedule();
    std::vector<TileHits> tiles;
    const GemmTraffic t = simulate_lru(g, drawn_capacity(g), &tiles);
    RC_ASSERT(std::int64_t(tiles.size()) == g.tile_rows() * g.tile_columns());
    double a = 0, b = 0;
    for (const TileHits& tile : tiles) {
        RC_ASSERT(tile.row < g.tile_rows() && tile.column < g.tile_columns() && tile.round < g.rounds());
        a += tile.a, b += tile.b;
    }
    const double steps = double(g.k_blocks());
    RC_ASSERT(std::abs(a * steps - double(t.a_hits)) < 1e-6 && std::abs(b * steps - double(t.b_hits)) < 1e-6);
}

// Two tiles of 2 x 2 side by side, K = 8 in steps of 1, one byte an element; the right one at half the speed.
// A is read by both: 2 B a step; B0 and B1 by one each, 2 B a step; C: 4 B a tile.
TileSchedule two_tiles_one_late() {
    return {.m = 2,
            .n = 4,
            .k = 8,
            .a_bytes = 1,
            .b_bytes = 1,
            .c_bytes = 1,
            .tile_m = 2,
            .tile_n = 2,
            .tile_k = 1,
            .clusters = 2,
            .late_clusters = 1,
            .skew = 1};
}

TEST(SimulateSkew, ByHand) {
    // At its step p the late CTA is p steps behind. Since A's block was read the other has read A and B0 of
    // p steps and it itself A and B1 of p steps: 8 p bytes. 16 B of L2 are enough up to p = 2, and A's blocks
    // 3 to 7 are read again.
    const TileSchedule g = two_tiles_one_late();
    const GemmTraffic t = simulate_lru(g, 16);
    EXPECT_EQ(t.dram_a_bytes, 2 * 8 + 2 * 5);
    EXPECT_EQ(t.dram_b_bytes, 4 * 8);
    EXPECT_EQ(t.dram_c_bytes, 8);
    EXPECT_EQ(t.a_hits, 3);
    EXPECT_EQ(t.dram_waits, 16);  // B is never there
    EXPECT_EQ(simulate_blocks(g, 16).dram_a_bytes, t.dram_a_bytes);
    // With all of it in L2, 56 B, nothing is read twice; with nothing, all but step 0, taken together.
    EXPECT_EQ(simulate_lru(g, 56).dram_bytes(), 56);
    EXPECT_EQ(simulate_lru(g, 0).dram_a_bytes, 2 * 8 + 2 * 7);
}

TileSchedule skewed_schedule(TileSchedule g, int late, double skew) {
    g.late_clusters = std::min<std::int64_t>(late, g.clusters - 1);
    g.skew = skew;
    return g;
}
TileSchedule drawn_skewed_schedule() {
    return skewed_schedule(drawn_schedule(), *rc::gen::inRange(0, 8), *rc::gen::inRange(0, 50) / 100.0);
}

RC_GTEST_PROP(SimulateSkew, NoSkewIsLockStep, ()) {
    const TileSchedule g = drawn_schedule(), none = skewed_schedule(g, 3, 0);
    const std::int64_t capacity = drawn_capacity(g);
    RC_ASSERT(simulate_lru(none, capacity) == simulate_lru(g, capacity));
    RC_ASSERT(simulate_blocks(none, capacity) == simulate_blocks(g, capacity));
    RC_ASSERT(simulate_opt(drawn_skewed_schedule(), 0).dram_bytes() > 0);
}

RC_GTEST_PROP(SimulateSkew, ReadsNoLessThanLockStepAndNoMoreThanL2Gives, ()) {
    const TileSchedule g = drawn_skewed_schedule();
    const std::int64_t capacity = drawn_capacity(g);
    const GemmTraffic t = simulate_lru(g, capacity),
                      lock_step = simulate_lru(skewed_schedule(g, 0, 0), capacity);
    RC_ASSERT(t.dram_bytes() >= lock_step.dram_bytes());
    RC_ASSERT(t.dram_bytes() >= simulate_opt(g, capacity).dram_bytes());
    RC_ASSERT(t.l2_read_bytes >= t.dram_a_bytes + t.dram_b_bytes);
    RC_ASSERT(t.both_hits <= std::min(t.a_hits, t.b_hits));
    RC_ASSERT(std::max(t.a_hits, t.b_hits) <= t.steps);
    RC_ASSERT(lru_dram_bytes(g, capacity) == t.dram_bytes());
    RC_ASSERT(simulate_lru(g, all_bytes(g)) == simulate_lru(skewed_schedule(g, 0, 0), all_bytes(g)));
    RC_ASSERT(simulate_blocks(g, all_bytes(g)).dram_bytes() == all_bytes(g));
}

// Tile schedules that fall behind by a tenth to the whole of a tile, over caches too small to keep much from round to
// round, as those of a GPU are: beside two clocks block by block.
TEST(SimulateSkew, IsNearTheSimulationBlockByBlock) {
    std::mt19937 random(20261122);
    const auto number = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    double mean = 0, worst = 0, ignored = 0;
    constexpr int cases = 300;
    for (int i = 0; i < cases; ++i) {
        TileSchedule g = random_schedule(number);
        g.cluster_m = g.cluster_n = g.split_k = 1;
        g.tile_m = g.tile_n = 4, g.tile_k = 1;
        g.m = number(60, 120), g.n = number(60, 120), g.k = number(60, 120);
        g.clusters = number(24, 40), g.group = number(1, 8);
        g = skewed_schedule(g, number(2, 5), number(10, 100) / 100.0 / double(g.rounds()));
        const std::int64_t capacity = (g.m * g.a_bytes + g.n * g.b_bytes) * g.k * number(4, 15) / 100;
        const double exact = double(simulate_blocks(g, capacity).dram_bytes());
        const double error = std::abs(double(simulate_lru(g, capacity).dram_bytes()) / exact - 1);
        mean += error / cases, worst = std::max(worst, error);
        ignored += std::abs(double(simulate_lru(skewed_schedule(g, 0, 0), capacity).dram_bytes()) / exact - 1)
                   / cases;
    }
    EXPECT_LE(mean, 0.012);
    EXPECT_LE(worst, 0.12);
    EXPECT_GE(ignored, 2 * mean) << "lock step is as near";
}

TEST(SimulateLru, RefusesWhatIsNoSchedule) {
    TileSchedule g = sixteen_tiles();
    g.k = 0;
    EXPECT_THROW(simulate_lru(g, 1), RequestError);
    g = sixteen_tiles();
    g.clusters = 0;
    EXPECT_THROW(simulate_lru(g, 1), RequestError);
    g = sixteen_tiles();
    g.late_clusters = 2, g.skew = 0.1;  // who is there to lag behind?
    EXPECT_THROW(simulate_lru(g, 1), RequestError);
    g = sixteen_tiles();
    g.skew = -0.1;
    EXPECT_THROW(simulate_lru(g, 1), RequestError);
    g = sixteen_tiles();
    g.m = g.n = std::int64_t{1} << 30;  // 2^58 tiles
    EXPECT_THROW(simulate_lru(g, 1), RequestError);
}

}  // namespace
}  // namespace rooftile
