#include "rooftile/model/fuse_ring.hpp"

#include <gtest/gtest.h>

namespace rooftile {
namespace {

/// Numbers that are easy to reckon with: 4 SMs at 1 GHz, 64 GB/s of copy, no latency but DRAM's.
FuseHardware simple() {
    FuseHardware hw{};
    hw.sms = 4;
    hw.clock_hz = 1e9;
    hw.read_bandwidth = hw.write_bandwidth = hw.copy_bandwidth = 64e9;
    hw.l2_bandwidth = 1e15;
    hw.dram_latency = hw.loaded_latency = 1000;
    hw.loaded_factor = 1;
    hw.launch_seconds = 0;
    hw.issue_lanes = 128;
    hw.mufu_rate = 16;
    hw.alu_rate = 64;
    hw.drift = hw.cta_start = hw.cluster_start = hw.dsmem_latency = 0;
    return hw;
}

Program rows_of(std::int64_t rows, std::int64_t columns) {
    Program p;
    p.form = FuseForm::row;
    p.rows = rows;
    p.columns = columns;
    return p;
}

ProgramWork two_walks(double issue) {
    ProgramWork work;
    work.full_bytes = 2;
    work.online = {issue, 0};
    work.reductions = 1;
    work.readings = 2;
    return work;
}

constexpr RingLaunch four_ctas = {
    .lanes = 512, .cluster = 1, .slots = 8, .chunks = 4, .chunk_bytes = 16384, .clusters = 4};

// 64 rows of 32768 elements of 2 B read and written: 2 * 4 MiB / 64 GB/s = 131.072 us. Spare: 4 slots of
// 16384 B; needed: 8 B a cycle and SM through 1000 cycles and, until half of a row's slots are free again,
// 380 + (256 * 17/16 + 8 * 60) / 2 = 756 more are 14048 B.
TEST(FuseRing, TakesDramsTimeWhereNothingElseCounts) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_EQ(f.given, 65536);
    EXPECT_NEAR(f.needed, 14048, 1);
    // Launch: the first load's 1000 cycles. The last row: (380 + 256 * 17/16 + 8 * 60 + 380) / 2 cycles.
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 + 1 + 0.756, 0.01);
    EXPECT_EQ(f.time.bound, Bound::dram);
}

// Five rows for four CTAs: one of them takes two, so all last as long as eight rows would.
TEST(FuseRing, LastsAsLongAsTheBusiestCluster) {
    const Program p = rows_of(5, 32768);
    const FusedBytes bytes = {5 * 32768 * 2, 5 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_NEAR(f.time.dram * 1e6, 8 * 32768 * 4 / 64e3, 1e-6);
}

// Slots for one row and no more: until a row gives slots back nothing arrives, 1756 cycles for 16 rows each.
TEST(FuseRing, RunsDryWithoutSpareSlots) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch full = four_ctas;
    full.slots = 4;
    const double spare_seconds = ring_flow(simple(), p, two_walks(1), bytes, four_ctas).time.seconds;
    const FuseFlow dry = ring_flow(simple(), p, two_walks(1), bytes, full);
    EXPECT_NEAR((dry.time.seconds - spare_seconds) * 1e6, 16 * 1.756, 0.01);
    EXPECT_EQ(dry.time.bound, Bound::latency);
    // A single walk gives every slot back at once.
    ProgramWork sum = two_walks(1);
    sum.readings = 1;
    EXPECT_GT(ring_flow(simple(), p, sum, bytes, full).given, dry.given);
}

// A weight that is read again: two L2 latencies for each of 4 chunks; kept, nothing.
TEST(FuseRing, WeightsThatAreReadAgainKeepTheirChunksWaiting) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    ProgramWork work = two_walks(1);
    work.shared_loads = 1;
    work.shared_bytes = 2;
    RingLaunch kept = four_ctas;
    kept.kept = true;
    EXPECT_EQ(ring_row_cycles(hw, p, work, four_ctas) - ring_row_cycles(hw, p, work, kept), 4 * 2 * 250);
}

// Through device memory: shuffles, a barrier and four L2 latencies more than within a CTA.
TEST(FuseRing, MeetingInDeviceMemoryTakesL2Latencies) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    RingLaunch far = four_ctas;
    far.cluster = 32;
    far.far = true;
    EXPECT_EQ(ring_meeting_cycles(hw, two_walks(1), far) - ring_meeting_cycles(hw, two_walks(1), four_ctas),
              140 + 100 + 4 * 250);
}

// 64 instructions an element: 32768 * 64 / 128 * 17/16 = 17408 cycles a row, twice DRAM's 8192.
TEST(FuseRing, InstructionsBindWhereTheyTakeLonger) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(64), bytes, four_ctas);
    EXPECT_NEAR(ring_row_cycles(simple(), p, two_walks(64), four_ctas), 17408 + 8 * 60 + 380, 1);
    EXPECT_GT(f.time.seconds * 1e6, 16 * 17.408);
    EXPECT_EQ(f.time.bound, Bound::issue);
}

}  // namespace
}  // namespace rooftile
