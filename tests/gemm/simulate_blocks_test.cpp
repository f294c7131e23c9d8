#include "rooftile/gemm/simulate_blocks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/simulate_lru.hpp"
#include "tests/gemm/random_schedule.hpp"

namespace rooftile {
namespace {

// One row of 3 tiles of C, one at a time, K of one step: A, B0; A, B1; A, B2, each block 4 B. Then the same
// row of A again below: 2 rows in bands of 2, column by column, read A0 B0 A1 B0 A0 B1 A1 B1 A0 B2 A1 B2.
TileSchedule six_tiles() {
    return {.m = 4,
            .n = 6,
            .k = 2,
            .a_bytes = 1,
            .b_bytes = 1,
            .c_bytes = 1,
            .tile_m = 2,
            .tile_n = 2,
            .tile_k = 2,
            .clusters = 1,
            .order = Order::grouped,
            .group = 2};
}

TEST(SimulateOpt, ByHand) {
    // Two blocks fit, and C does not count. A0 stays for good; then A1 can stay no longer than a step, while
    // a column of B is read once: A0, A1 (twice more), B0, B1, B2 = 7 blocks; or B is kept within its pair
    // and A1 or A0 read again. LRU, with C of 4 B between: A0 B0 c A1 B0 c A0 ... nothing but B0 would fit,
    // and C drives it out.
    EXPECT_EQ(simulate_opt(six_tiles(), 12).dram_bytes() - 24, 5 * 4);  // all that is needed soon fits
    EXPECT_EQ(simulate_opt(six_tiles(), 8).dram_bytes() - 24, 5 * 4 + 2 * 4);
    EXPECT_EQ(simulate_opt(six_tiles(), 0).dram_bytes() - 24, 12 * 4);
    EXPECT_EQ(simulate_blocks(six_tiles(), 8).dram_bytes() - 24, 12 * 4);
}

RC_GTEST_PROP(SimulateOpt, NeverAboveLru, ()) {
    const TileSchedule g = drawn_schedule();
    const std::int64_t capacity = drawn_capacity(g);
    const GemmTraffic opt = simulate_opt(g, capacity), lru = simulate_blocks(g, capacity);
    RC_ASSERT(opt.dram_bytes() <= lru.dram_bytes());
    RC_ASSERT(opt.dram_bytes() >= all_bytes(g));
    RC_ASSERT(opt.l2_read_bytes == lru.l2_read_bytes);
}

RC_GTEST_PROP(SimulateOpt, MoreCapacityNeverReadsMore, ()) {
    const TileSchedule g = drawn_schedule();
    const std::int64_t capacity = drawn_capacity(g);
    RC_ASSERT(simulate_opt(g, capacity + 1).dram_bytes() <= simulate_opt(g, capacity).dram_bytes());
}

TEST(SimulateHalves, ByHand) {
    // Two tiles side by side at once, one on either side: A is read by both, B0 by one, B1 by the other. Each
    // block, 4 B, is 2 B from either home. A: 2 B cross each way; B0 and B1: 2 B each; C: 2 B of each tile.
    TileSchedule g = six_tiles();
    g.m = 2, g.n = 4, g.clusters = 2;
    const GemmTraffic t = simulate_halves(g, 1000);
    EXPECT_EQ(t.dram_bytes(), 4 + 8 + 8);
    EXPECT_EQ(t.fabric_bytes, 4 + 2 + 2 + 2 + 2);
    EXPECT_EQ(t.steps, 2);
    // Who asks second finds its own home's part and the far copy where the first left them. Nothing left:
    // both ask DRAM for all of A, and what crosses is asked for at DRAM too.
    EXPECT_EQ(simulate_halves(g, 0).dram_bytes(), 2 * 4 + 8 + 8);
}

RC_GTEST_PROP(SimulateHalves, AnEndlessL2ReadsEverythingOnce, ()) {
    const TileSchedule g = drawn_schedule();
    RC_ASSERT(simulate_halves(g, all_bytes(g)).dram_bytes() == all_bytes(g));
}

// On one side alone there is one half in use, and the other keeps the homes of half of it.
RC_GTEST_PROP(SimulateHalves, OneClusterAtATimeSeesTwoCopiesOfHalf, ()) {
    TileSchedule g = drawn_schedule();
    g.clusters = 1;
    const GemmTraffic t = simulate_halves(g, drawn_capacity(g));
    // What stays is never less than one LRU of the half would keep of A and B with C beside it.
    RC_ASSERT(t.dram_bytes() >= all_bytes(g));
    RC_ASSERT(t.fabric_bytes <= t.l2_read_bytes + t.l2_write_bytes + t.dram_operand_bytes);
}

TEST(SimulateBlocks, RefusesWhatIsTooLong) {
    TileSchedule g = six_tiles();
    g.m = g.n = 256, g.k = 1 << 22;  // 2^29 blocks of A and B
    EXPECT_THROW(simulate_blocks(g, 1), RequestError);
    EXPECT_THROW(simulate_opt(g, 1), RequestError);
    EXPECT_THROW(simulate_halves(g, 1), RequestError);
    EXPECT_GT(simulate_lru(g, 1 << 30).dram_bytes(), 0);
}

}  // namespace
}  // namespace rooftile
