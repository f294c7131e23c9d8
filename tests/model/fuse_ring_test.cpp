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

// 64 rows of 32768 elements of 2 B read and written: 2 * 4 MiB / 64 GB/s = 131.072 us. Walks: 256 / 0.8135 + 8 *
// 85.14 = 995.8 cycles. A meeting: 461.3, and of 16 warps on 4 partitions 14.18 * 0.9237 instructions, 52.4. A slot
// comes back a row, 1509.5, and three of eight chunks, 373.4, before it is wanted again: 1882.9 cycles of 8 B each;
// needed: 1000.
TEST(FuseRing, TakesDramsTimeWhereNothingElseCounts) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_NEAR(f.given, 8 * 1882.9, 1);
    EXPECT_NEAR(f.needed, 8000, 1);
    // Launch: the first load's 1000 cycles. The last row: (513.7 + 1509.5) / 2 cycles.
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 + 1 + 1.012, 0.01);
    EXPECT_EQ(f.time.bound, Bound::dram);
}

// Five rows for four CTAs: one of them takes two, so all last as long as eight rows would.
TEST(FuseRing, LastsAsLongAsTheBusiestCluster) {
    const Program p = rows_of(5, 32768);
    const FusedBytes bytes = {5 * 32768 * 2, 5 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(1), bytes, four_ctas);
    EXPECT_NEAR(f.time.dram * 1e6, 8 * 32768 * 4 / 64e3, 1e-6);
}

// Slots for one row and no more. 16 instructions an element: walks of 4096 / 0.8135 + 681.12 = 5716.2 cycles, three
// eighths of them, 2143.6, between a slot's return and its next use. A load takes 4500: 2356.4 more than a row's
// 6229.8. Of DRAM's 8192 that is 1.0481 against 0.7605: (1 + 1.0481^5.04)^(1/5.04) = 1.1764 against 1.0455 times
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
    EXPECT_NEAR((dry.time.seconds - spare_seconds) * 1e6, 17.147, 0.01);
    EXPECT_EQ(dry.time.bound, Bound::latency);
    // A single walk gives every slot back at once.
    ProgramWork sum = two_walks(16);
    sum.readings = 1;
    EXPECT_GT(ring_flow(hw, p, sum, bytes, full).given, dry.given);
}

// What only the last walk reads is asked for a chunk ahead, behind the stores of a chunk: a quarter of the row's
// 8192 cycles of DRAM, 2048. Of 16 instructions an element 8 stand in that walk: 8192 elements a chunk * 8 / 128
// / 0.8135 + 85.14 = 714.5 cycles. Four chunks are each 1333.5 cycles longer and wait 250 for L2, but not where a thread
// has two vectors of a chunk: it asks for the next when the first is stored. Of two CTAs each stores half as much in
// that time: 1024 - 714.5.
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
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).draining, 4 * 1333.5, 1);
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).waiting, 4 * 250, 1e-6);
    // A chunk that takes longer to compute hides the stores, and of L2's latency the rest.
    EXPECT_EQ(ring_late(hw, p, work, late, 4 * 500).draining, 0);
    EXPECT_NEAR(ring_late(hw, p, work, late, 4 * 500).waiting, 4 * (500 + 250 - 714.5), 1);
    RingLaunch two_vectors = late;
    two_vectors.items = 2;
    EXPECT_NEAR(ring_late(hw, p, work, two_vectors, 8192).draining, 4 * 1333.5, 1);
    EXPECT_EQ(ring_late(hw, p, work, two_vectors, 8192).waiting, 0);
    late.ctas = 2;
    EXPECT_NEAR(ring_late(hw, p, work, late, 8192).draining, 4 * 309.5, 1);
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
    EXPECT_NEAR(ring_late(hw, p, work, four_ctas, 8192).draining, 4 * 1333.5, 1);
    EXPECT_EQ(ring_late(hw, p, work, kept, 8192).draining, 0);
    EXPECT_EQ(ring_late(hw, p, work, kept, 8192).waiting, 0);
    EXPECT_GT(ring_flow(hw, p, work, bytes, four_ctas).time.seconds,
              1.3 * ring_flow(hw, p, work, bytes, kept).time.seconds);
    EXPECT_EQ(ring_flow(hw, p, work, bytes, four_ctas).time.bound, Bound::latency);
}

// 64 rows of 4 clusters of 2 CTAs, two on each of 4 SMs: 16 rows each of 16384 elements in 2 chunks. Walks:
// 16384 * 32 / 128 / 0.8135 + 4 * 85.14 = 5375.6 cycles; a meeting 531.6, with shuffles for messages, and 14.18 * 0.9237
// instructions of 32 warps, 104.8. Two by turns: the second finds the first with so much of its walks to go as they
// are of a row, and as they come in bursts 1.003 times that. DRAM: 8192.
TEST(FuseRing, OneCtaComputesWhileAnotherMeets) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const RingLaunch two = {
        .lanes = 512, .cluster = 2, .slots = 4, .chunks = 2, .chunk_bytes = 16384, .clusters = 4, .ctas = 2};
    const double walks = 5375.6, meeting = 531.57 + 104.8;
    EXPECT_NEAR(ring_walks_cycles(simple(), p, two_walks(32), two), walks, 1);
    EXPECT_NEAR(ring_meeting_cycles(simple(), two_walks(32), two), meeting, 1);
    const FuseFlow f = ring_flow(simple(), p, two_walks(32), bytes, two);
    const double rows = meeting + walks * (1 + 1.003 * walks / (walks + meeting));
    const double bent = std::pow(1 + std::pow(rows / 8192, 5.04), 1 / 5.04);
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
    const double walks = 5375.6, meeting = 531.57 + 104.8, waiting = meeting + 3048;
    const double row = waiting + walks * (1 + 1.003 * walks / (walks + waiting)), full = row / (8192 / 0.98);
    const double dram = 131.072 / 0.98 * std::pow(1 + std::pow(full, 5.04), 1 / 5.04);
    EXPECT_NEAR(f.time.seconds * 1e6, dram + 1 + (meeting + row) / 2e3, 0.5);
}

// Through device memory: shuffles, a barrier and 42.47 L2 latencies more than within a CTA.
TEST(FuseRing, MeetingInDeviceMemoryTakesL2Latencies) {
    FuseHardware hw = simple();
    hw.l2_latency = 250;
    RingLaunch far = four_ctas;
    far.cluster = 32;
    far.far = true;
    EXPECT_NEAR(ring_meeting_cycles(hw, two_walks(1), far) - ring_meeting_cycles(hw, two_walks(1), four_ctas),
                70.29 + 320.7 + 42.47 * 250, 1e-6);
}

// 64 instructions an element: 32768 * 64 / 128 / 0.8135 = 20140.1 cycles a row, twice DRAM's 8192.
TEST(FuseRing, InstructionsBindWhereTheyTakeLonger) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple(), p, two_walks(64), bytes, four_ctas);
    EXPECT_NEAR(ring_walks_cycles(simple(), p, two_walks(64), four_ctas), 20140.1 + 8 * 85.14, 1);
    EXPECT_GT(f.time.seconds * 1e6, 16 * 20.140);
    EXPECT_EQ(f.time.bound, Bound::issue);
}

// Threads that reduce apart: neither their meeting nor their walk stands between a row and the next one, while the
// ring has two rows of slots. With 6 slots for rows of 4 chunks the last chunk of a row is asked for when half of the
// one before is stored: half of that, a load, a chunk and a meeting of 4 warps lie between two rows. Each element of a
// reducing thread takes 7.689 cycles.
TEST(FuseRing, WhoReducesApartHidesTheMeeting) {
    FuseHardware hw = simple();
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch apart = four_ctas;
    apart.reducing = 128;
    const double meeting = 461.28 + 14.18 * 0.9237 + 924.6, chunk = 8192 / 128 * 7.689 + 85.14;
    EXPECT_NEAR(ring_apart_cycles(hw, p, two_walks(16), apart, 5000, 1000), 4 * chunk + meeting, 1);
    RingLaunch short_of_slots = apart;
    short_of_slots.slots = 6;
    EXPECT_NEAR(ring_apart_cycles(hw, p, two_walks(16), short_of_slots, 5000, 1000),
                2500 + 1000 + chunk + meeting, 1);
    // Instructions of 4096 / 0.9689 cycles, and nothing beside them but the chunks.
    const double row = 4096 / 0.9689 + 8 * 85.14, full = row / 8192;
    const double ends = (ring_meeting_cycles(hw, two_walks(16), apart) + row) / 2e3;
    EXPECT_NEAR(ring_flow(hw, p, two_walks(16), bytes, apart).time.seconds * 1e6,
                131.072 * std::pow(1 + std::pow(full, 5.04), 1 / 5.04) + 1 + ends, 0.05);
}

}  // namespace
}  // namespace rooftile
