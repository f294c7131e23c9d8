#include "rooftile/model/fuse_ring.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/made_up_rows.hpp"

namespace rooftile {
namespace {

/// Numbers that are easy to reckon with: 64 GB/s of copy, no latency but DRAM's.
FuseHardware simple() {
    FuseHardware hw = four_sms(64e9);
    hw.l2_bandwidth = 1e15;
    hw.dram_latency = hw.loaded_latency = 1000;
    return hw;
}

constexpr RingLaunch four_ctas = {
    .lanes = 512, .cluster = 1, .slots = 8, .chunks = 4, .chunk_bytes = 16384, .clusters = 4};

// 64 rows of 32768 elements of 2 B read and written: 2 * 4 MiB / 64 GB/s = 131.072 us. Walks: 256 / 0.7407 + 8 *
// 29.35 = 580.4 cycles. A meeting: 432.0, and of 16 warps on 4 partitions 83.35 * 3.103 instructions, 1034.5. A slot
// comes back a row, 2047.0, and three of eight chunks, 217.7, before it is wanted again: 2264.6 cycles of 8 B each;
// needed: 1000.
TEST(FuseRing, TakesDramsTimeWhereNothingElseCounts) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_NEAR(f.given, 8 * 2264.6, 1);
    EXPECT_NEAR(f.needed, 8000, 1);
    // Launch: the first load's 1000 cycles. The last row: (1466.5 + 2047.0) / 2 cycles.
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 + 1 + 1.757, 0.01);
    EXPECT_EQ(f.time.bound, Bound::dram);
}

// Five rows for four CTAs: one of them takes two, so all last as long as eight rows would.
TEST(FuseRing, LastsAsLongAsTheBusiestCluster) {
    const Program p = rows_of(5, 32768);
    const FusedBytes bytes = {5 * 32768 * 2, 5 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_NEAR(f.time.dram * 1e6, 8 * 32768 * 4 / 64e3, 1e-6);
}

// Slots for one row and no more. 16 instructions an element: walks of 4096 / 0.7407 + 234.8 = 5764.7 cycles, three
// eighths of them, 2161.8, between a slot's return and its next use. A load takes 4500: 2338.2 more than a row's
// 7231.2. Of DRAM's 8192 that is 1.1681 against 0.8827: (1 + 1.1681^6.37)^(1/6.37) = 1.2276 against 1.0603 times
// 131.072 us.
TEST(FuseRing, RunsDryWithoutSpareSlots) {
    FuseHardware hw = simple();
    hw.loaded_latency = 4500;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch full = four_ctas;
    full.slots = 4;
    const double spare_seconds = ring_flow(hw, p, two_walks(16), bytes, four_ctas).time.seconds;
    const FuseFlow dry = ring_flow(hw, p, two_walks(16), bytes, full);
    EXPECT_NEAR((dry.time.seconds - spare_seconds) * 1e6, 21.926, 0.01);
    EXPECT_EQ(dry.time.bound, Bound::latency);
    // A single walk gives every slot back at once.
    ProgramWork sum = two_walks(16);
    sum.readings = 1;
    EXPECT_GT(ring_flow(hw, p, sum, bytes, full).given, dry.given);
}

// What only the last walk reads is asked for a chunk ahead, behind the stores of a chunk: a quarter of the row's
// 8192 cycles of DRAM, 2048. Of 16 instructions an element 8 stand in that walk: 8192 elements a chunk * 8 / 128
// / 0.7407 + 29.35 = 720.6 cycles. Four chunks are each 1327.4 cycles longer and wait 250 for L2. Of two CTAs each
// stores half as much in that time: 1024 - 720.6.
TEST(FuseRing, LoadsOfTheLastWalkStandBehindItsStores) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    ProgramWork work = two_walks(16);
    work.full_bytes = 4;
    work.result = {8, 0};
    EXPECT_EQ(ring_late(hw, p, work, four_ctas, 8192).draining, 0);
    EXPECT_EQ(ring_late(hw, p, work, four_ctas, 8192).waiting, 0);
    RingLaunch late = four_ctas;
    late.late_bytes = 16384;
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).draining, 4 * 1327.4, 1);
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).waiting, 4 * 250, 1e-6);
    // A chunk that takes longer to compute hides the stores, and of L2's latency the rest.
    EXPECT_EQ(ring_late(hw, p, work, late, 4 * 500).draining, 0);
    EXPECT_NEAR(ring_late(hw, p, work, late, 4 * 500).waiting, 4 * (500 + 250 - 720.6), 1);
    late.ctas = 2;
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).draining, 4 * 303.4, 1);
}

// Weights are read by the last walk, too, where shared memory does not keep them.
TEST(FuseRing, WeightsThatAreNotKeptStandBehindStores) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    ProgramWork work = two_walks(16);
    work.result = {8, 0};
    work.shared_loads = 1;
    RingLaunch kept = four_ctas;
    kept.kept = true;
    EXPECT_NEAR(ring_late(hw, p, work, four_ctas, 8192).draining, 4 * 1327.4, 1);
    EXPECT_EQ(ring_late(hw, p, work, kept, 8192).draining, 0);
    EXPECT_EQ(ring_late(hw, p, work, kept, 8192).waiting, 0);
    EXPECT_GT(ring_flow(hw, p, work, bytes, four_ctas).time.seconds,
              1.3 * ring_flow(hw, p, work, bytes, kept).time.seconds);
    EXPECT_EQ(ring_flow(hw, p, work, bytes, four_ctas).time.bound, Bound::latency);
}

// 64 rows of 4 clusters of 2 CTAs, two on each of 4 SMs: 16 rows each of 16384 elements in 2 chunks. Walks:
// 16384 * 32 / 128 / 0.7407 + 4 * 29.35 = 5647.3 cycles; a meeting 514.9, with shuffles for messages, and 83.35 * 3.103
// instructions of 32 warps, 2069.1. Two by turns: the second finds the first with so much of its walks to go as they
// are of a row, and as they come in bursts 1.159 times that. DRAM: 8192.
TEST(FuseRing, OneCtaComputesWhileAnotherMeets) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const RingLaunch two = {
        .lanes = 512, .cluster = 2, .slots = 4, .chunks = 2, .chunk_bytes = 16384, .clusters = 4, .ctas = 2};
    const double walks = 5647.3, meeting = 514.90 + 2069.1;
    EXPECT_NEAR(ring_walks_cycles(simple(), p, two_walks(32), two), walks, 1);
    EXPECT_NEAR(ring_meeting_cycles(simple(), two_walks(32), two), meeting, 1);
    const FuseFlow f = ring_flow(simple(), p, two_walks(32), bytes, two);
    const double rows = meeting + walks * (1 + 1.159 * walks / (walks + meeting));
    const double bent = std::pow(1 + std::pow(rows / 8192, 6.37), 1 / 6.37);
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 * bent + 1 + (meeting + rows) / 2e3, 0.5);
}

// The CTAs above, each for one row: no walk over rows costs DRAM's rate, but 0.98 of a copy is what such
// grids reach; and each starts with a load of 1000 cycles and 2 * 16384 B at 16 B a cycle, 3048 in all, while the
// other one computes.
TEST(FuseRing, CtasOfOneRowStartWhileOthersCompute) {
    FuseHardware hw = simple();
    hw.sm_bandwidth = 16;
    hw.drift = 0.5;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const RingLaunch one = {.lanes = 512,
                            .cluster = 2,
                            .slots = 2,
                            .chunks = 2,
                            .chunk_bytes = 16384,
                            .clusters = 4,
                            .ctas = 2,
                            .one_row = true};
    const FuseFlow f = ring_flow(hw, p, two_walks(32), bytes, one);
    EXPECT_NEAR(f.time.dram * 1e6, 131.072 / 0.98, 1e-3);
    const double walks = 5647.3, meeting = 514.90 + 2069.1, waiting = meeting + 3048;
    const double row = waiting + walks * (1 + 1.159 * walks / (walks + waiting)), full = row / (8192 / 0.98);
    const double dram = 131.072 / 0.98 * std::pow(1 + std::pow(full, 6.37), 1 / 6.37);
    EXPECT_NEAR(f.time.seconds * 1e6, dram + 1 + (meeting + row) / 2e3, 0.5);
}

// Through device memory: shuffles, a barrier and 27.27 L2 latencies more than within a CTA.
TEST(FuseRing, MeetingInDeviceMemoryTakesL2Latencies) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    RingLaunch far = four_ctas;
    far.cluster = 32;
    far.far = true;
    EXPECT_NEAR(ring_meeting_cycles(hw, two_walks(1), far) - ring_meeting_cycles(hw, two_walks(1), four_ctas),
                82.9 + 266.2 + 27.27 * 250, 1e-6);
}

// 64 instructions an element: 32768 * 64 / 128 / 0.7407 = 22119.6 cycles a row, twice DRAM's 8192.
TEST(FuseRing, InstructionsBindWhereTheyTakeLonger) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(64), bytes, four_ctas);
    EXPECT_NEAR(ring_walks_cycles(simple(), p, two_walks(64), four_ctas), 22119.6 + 8 * 29.35, 1);
    EXPECT_GT(f.time.seconds * 1e6, 16 * 22.120);
    EXPECT_EQ(f.time.bound, Bound::issue);
}

// Threads that reduce apart: neither their meeting nor their walk stands between a row and the next one, while the
// ring has two rows of slots. With 6 slots for rows of 4 chunks the last chunk of a row is asked for when half of the
// one before is stored: half of that, a load, a chunk and a meeting of 4 warps lie between two rows.
TEST(FuseRing, WhoReducesApartHidesTheMeeting) {
    FuseHardware hw = simple();
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch apart = four_ctas;
    apart.reducing = 128;
    const double meeting = 432.00 + 83.35 * 3.103 + 1521;
    EXPECT_NEAR(ring_apart_cycles(hw, two_walks(16), apart, 5000, 1000), 4 * 29.35 + meeting, 1);
    RingLaunch short_of_slots = apart;
    short_of_slots.slots = 6;
    EXPECT_NEAR(ring_apart_cycles(hw, two_walks(16), short_of_slots, 5000, 1000),
                2500 + 1000 + 29.35 + meeting, 1);
    // Instructions of 4096 / 0.6901 cycles, and nothing beside them but the chunks.
    const double row = 4096 / 0.6901 + 8 * 29.35, full = row / 8192;
    const double ends = (ring_meeting_cycles(hw, two_walks(16), apart) + row) / 2e3;
    EXPECT_NEAR(ring_flow(hw, p, two_walks(16), bytes, apart).time.seconds * 1e6,
                131.072 * std::pow(1 + std::pow(full, 6.37), 1 / 6.37) + 1 + ends, 0.05);
}

}  // namespace
}  // namespace rooftile
