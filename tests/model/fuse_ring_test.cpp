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
    work.reductions = work.meetings = 1;
    work.readings = 2;
    return work;
}

constexpr RingLaunch four_ctas = {
    .lanes = 512, .cluster = 1, .slots = 8, .chunks = 4, .chunk_bytes = 16384, .clusters = 4};

// 64 rows of 32768 elements of 2 B read and written: 2 * 4 MiB / 64 GB/s = 131.072 us. Walks: 256 / 0.72 *
// (1 + 0.5 / 16) + 8 * 85 = 1046.7 cycles, a meeting 380. A slot comes back a row, 1426.7, and three of eight
// chunks, 392.5, before it is wanted again: 1819.2 cycles of 8 B each; needed: 1000.
TEST(FuseRing, TakesDramsTimeWhereNothingElseCounts) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_NEAR(f.given, 8 * 1819.2, 1);
    EXPECT_NEAR(f.needed, 8000, 1);
    // Launch: the first load's 1000 cycles. The last row: (380 + 1426.7) / 2 cycles.
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 + 1 + 0.903, 0.01);
    EXPECT_EQ(f.time.bound, Bound::dram);
}

// Five rows for four CTAs: one of them takes two, so all last as long as eight rows would.
TEST(FuseRing, LastsAsLongAsTheBusiestCluster) {
    const Program p = rows_of(5, 32768);
    const FusedBytes bytes = {5 * 32768 * 2, 5 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_NEAR(f.time.dram * 1e6, 8 * 32768 * 4 / 64e3, 1e-6);
}

// Slots for one row and no more. 16 instructions an element: walks of 4096 / 0.72 * 33/32 + 680 = 6546.7
// cycles, three eighths of them, 2455, between a slot's return and its next use. A load takes 4000: 1545 more
// than a row's 6926.7. Of DRAM's 8192 that is 1.0342 against 0.8455: (1 + 1.0342^12)^(1/12) = 1.0793 against
// 1.0105 times 131.072 us.
TEST(FuseRing, RunsDryWithoutSpareSlots) {
    FuseHardware hw = simple();
    hw.loaded_latency = 4000;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch full = four_ctas;
    full.slots = 4;
    const double spare_seconds = ring_flow(hw, p, two_walks(16), bytes, four_ctas).time.seconds;
    const FuseFlow dry = ring_flow(hw, p, two_walks(16), bytes, full);
    EXPECT_NEAR((dry.time.seconds - spare_seconds) * 1e6, 9.01, 0.05);
    EXPECT_EQ(dry.time.bound, Bound::latency);
    // A single walk gives every slot back at once.
    ProgramWork sum = two_walks(16);
    sum.readings = 1;
    EXPECT_GT(ring_flow(hw, p, sum, bytes, full).given, dry.given);
}

// A weight that is read again: 0.4 L2 latencies for each of two vectors of 4 chunks; kept, nothing.
TEST(FuseRing, WeightsThatAreReadAgainKeepTheirChunksWaiting) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    ProgramWork work = two_walks(1);
    work.shared_loads = 1;
    work.shared_bytes = 2;
    RingLaunch kept = four_ctas;
    kept.kept = true;
    EXPECT_NEAR(ring_walks_cycles(hw, p, work, four_ctas) - ring_walks_cycles(hw, p, work, kept), 800, 1e-6);
}

// Through device memory: shuffles, a barrier and 25 L2 latencies more than within a CTA.
TEST(FuseRing, MeetingInDeviceMemoryTakesL2Latencies) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    RingLaunch far = four_ctas;
    far.cluster = 32;
    far.far = true;
    EXPECT_EQ(ring_meeting_cycles(hw, two_walks(1), far) - ring_meeting_cycles(hw, two_walks(1), four_ctas),
              140 + 100 + 25 * 250);
}

// 64 instructions an element: 32768 * 64 / 128 / 0.72 * 33/32 = 23466.7 cycles a row, thrice DRAM's 8192.
TEST(FuseRing, InstructionsBindWhereTheyTakeLonger) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(64), bytes, four_ctas);
    EXPECT_NEAR(ring_walks_cycles(simple(), p, two_walks(64), four_ctas), 23466.7 + 8 * 85, 1);
    EXPECT_GT(f.time.seconds * 1e6, 16 * 23.4667);
    EXPECT_EQ(f.time.bound, Bound::issue);
}

}  // namespace
}  // namespace rooftile
