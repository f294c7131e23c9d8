// Registers and CTAs of fused kernels' threads, before compiling: counted by hand on an H200's SM of four partitions with
// 16384 registers each.
#include "rooftile/fuse/registers.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/core/arithmetic.hpp"

namespace rooftile {
namespace {

FuseHardware h200_hardware() {
    std::vector<std::string> unknown;
    return fuse_hardware(machine_by_id("h200-sxm"), unknown);
}

double resident(int threads, double registers) {
    return resident_ctas(h200_hardware(), {.threads = threads}, registers, 0);
}

TEST(FuseRegisters, TheFullestPartitionCounts) {
    const FuseHardware hw = h200_hardware();
    EXPECT_EQ(even_threads(hw, 32), 128);  // one warp in one of four: as if each had one
    EXPECT_EQ(even_threads(hw, 128), 128);
    EXPECT_EQ(even_threads(hw, 17 * 32), 5 * 128);
}

TEST(FuseRegisters, WarpsLieInOnePartition) {
    // 16384 / (32 * 120) = 4.27: four warps a partition, sixteen in all; all registers together would do for 17.
    EXPECT_EQ(resident(32, 120), 16);
    // 16384 / (32 * 96) = 5.33: twenty warps, ten CTAs of two.
    EXPECT_EQ(resident(64, 96), 10);
    // 16384 / (32 * 112) = 4.57: sixteen warps, eight CTAs of two; all registers together would do for nine.
    EXPECT_EQ(resident(64, 112), 8);
    // CTAs of whole rounds over the partitions: 65536 / (128 * 40) = 12.8.
    EXPECT_EQ(resident(128, 40), 12);
    EXPECT_EQ(resident(32, 32), 32);  // CTAs of an SM at most
}

TEST(FuseRegisters, AnUnknownNumberOfPartitionsLeavesTheSum) {
    FuseHardware hw = h200_hardware();
    hw.issue_lanes = unknown_number;
    EXPECT_EQ(resident_ctas(hw, {.threads = 32}, 120, 0), 17);
    EXPECT_EQ(even_threads(hw, 32), 32);
}

// Of 256 KiB shared memory has 228, 196 or 164: the least that leaves four reserves of 1 KiB beside what CTAs take.
TEST(FuseRegisters, L1HasWhatSharedMemoryLeaves) {
    const FuseHardware hw = h200_hardware();
    constexpr double kib = 1024;
    EXPECT_EQ(l1_beside(hw, 192 * kib + 1), 28 * kib);
    EXPECT_EQ(l1_beside(hw, 192 * kib), 60 * kib);
    EXPECT_EQ(l1_beside(hw, 160 * kib), 92 * kib);
    EXPECT_EQ(l1_beside(hw, 228 * kib), 28 * kib);  // never less
    FuseHardware bare = hw;
    bare.carveout_step = unknown_number;
    EXPECT_TRUE(std::isnan(l1_beside(bare, 0)));
}

// The H200's GPCs lose 12 SMs to clusters of four and of eight.
TEST(ClusterSms, AreThoseThatWereMeasured) {
    const Machine m = machine_by_id("h200-sxm");
    EXPECT_EQ(cluster_sms(m, 1), 132);
    EXPECT_EQ(cluster_sms(m, 2), 132);
    EXPECT_EQ(cluster_sms(m, 8), 120);
    EXPECT_EQ(cluster_sms(m, 16), 120);  // as of eight, which somebody measured
    Machine few = m;
    set_number(few, "cluster.sms_2=100 SMs");
    EXPECT_EQ(cluster_sms(few, 2), 100);
}

}  // namespace
}  // namespace rooftile
