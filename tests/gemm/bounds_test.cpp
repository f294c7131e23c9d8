#include "rooftile/gemm/bounds.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gemm/made_up_gpu.hpp"

namespace rooftile {
namespace {

TEST(LeastTraffic, EveryOperandOnce) {
    // 2 (64 * 32 + 16 * 32 + 64 * 16) = 2 (2048 + 512 + 1024) B; with storage for all of it nothing binds.
    EXPECT_EQ(min_traffic_bytes(sizes_of(gemm_problem(64, 16, 32)), 1e9, 1), 7168);
}

TEST(LeastTraffic, SumsOfFourBytesAskForMore) {
    // V = 1024^3 = 2^30 products, 65536 B. bf16 all through: sqrt(2 * 2 * 2 / 2^16) = 2^-6.5: 2^31 / 2^6.5 -
    // 2^17 = 23726566.4 - 131072. Sums of fp32: sqrt(16 / 2^16) = 2^-6: 2^25 - 2^17 - 2 * 2^20.
    GemmSizes s = sizes_of(gemm_problem(1024, 1024, 1024));
    EXPECT_EQ(s.sum_bytes, 4);
    EXPECT_EQ(min_traffic_bytes(s, 65536, 1), 33554432 - 131072 - 2097152);
    s.sum_bytes = 2;
    EXPECT_NEAR(min_traffic_bytes(s, 65536, 1), 23726566.4 - 131072, 0.1);
    // Four memories of that size lose 2 S each.
    EXPECT_NEAR(min_traffic_bytes(s, 65536, 4), 23726566.4 - 4 * 131072, 0.1);
}

TEST(LeastTraffic, IsNoMoreThanAScheduleMoves) {
    // 16384 x 16384 x 1024 in bf16 with 50 MB: row by row moves 604 MB, A, B and C once; the form without the
    // loss of 2 S says 757.
    EXPECT_LE(min_traffic_bytes(sizes_of(gemm_problem(16384, 16384, 1024)), 50e6, 1), 604e6 + 1e6);
}

TEST(L2LowerBound, OfTheMadeUpGpu) {
    GemmHardware hw = made_up_gpu();
    hw.shared_per_sm = 65536 - 4 * 1024;
    hw.registers_per_sm = 1024;  // with shared memory 65536 B an SM
    const GemmProblem p = gemm_problem(1024, 1024, 1024);
    GemmCandidate t = wgmma_tile(128, 128);
    // As above, four SMs.
    EXPECT_EQ(l2_lower_bound_bytes(hw, t, p), 33554432 - 4 * 131072 - 2097152);
    // A pair has twice the storage: 2^31 sqrt(16 / 2^17) = 23726566.4; two pairs lose as much as four SMs.
    t.cluster_m = 2;
    EXPECT_NEAR(l2_lower_bound_bytes(hw, t, p), 23726566.4 - 4 * 131072 - 2097152, 0.1);
    // Two CTAs on an SM have half of it each: 2^31 sqrt(16 / 2^15) = 47453132.8, eight of them.
    t.cluster_m = 1, t.ctas_per_sm = 2;
    EXPECT_NEAR(l2_lower_bound_bytes(hw, t, p), 47453132.8 - 4 * 131072 - 2097152, 0.1);
    const GemmCandidate fits = wgmma_tile(64, 64);  // 16 KiB of sums
    EXPECT_LE(l2_lower_bound_bytes(hw, fits, p), l2_bytes(fits, p));
    hw.registers_per_sm = unknown_number;
    EXPECT_TRUE(std::isnan(l2_lower_bound_bytes(hw, t, p)));
}

TEST(SharedLowerBound, OfTheMadeUpGpu) {
    GemmHardware hw = made_up_gpu();
    hw.registers_per_sm = 16384;  // 65536 B
    const GemmProblem p = gemm_problem(1024, 1024, 1024);
    // As L2's with the same storage on four SMs.
    EXPECT_EQ(shared_lower_bound_bytes(hw, p), 33554432 - 4 * 131072 - 2097152);
    // 64 tiles of 128x128 take 16 steps of 64; each step's A is read once, its B by both warpgroups' 64 rows:
    // (128 + 2 x 128) x 64 x 2 B = 49152 B; C is 2 MiB.
    GemmCandidate t = wgmma_tile(128, 128);
    t.warp_m = 64, t.warp_n = 128;
    EXPECT_EQ(shared_traffic_bytes(t, p), 64.0 * 16 * 49152 + 2097152);
    // Half a tile more of M is a whole one, zeros and all.
    const GemmProblem more = gemm_problem(1088, 1024, 1024);
    EXPECT_EQ(shared_traffic_bytes(t, more), 72.0 * 16 * 49152 + 2 * 1088 * 1024);
    hw.sms = unknown_number;
    EXPECT_TRUE(std::isnan(shared_lower_bound_bytes(hw, p)));
}

}  // namespace
}  // namespace rooftile
