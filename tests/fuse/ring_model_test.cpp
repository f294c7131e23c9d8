#include "rooftile/fuse/ring_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/fuse/made_up_rows.hpp"

namespace rooftile {
namespace {

/// Numbers that are easy to compute with: 64 GB/s of copy, no latency but DRAM's.
FuseHardware simple_ring() {
    FuseHardware hw = four_sms(64e9);
    hw.l2_bandwidth = 1e15;
    hw.dram_latency = hw.loaded_latency = 1000;
    return hw;
}

constexpr RingLaunch four_ring_ctas = {
    .threads_per_row = 512, .cluster = 1, .slots = 8, .chunks = 4, .chunk_bytes = 16384, .clusters = 4};

// 64 rows of 32768 elements of 2 B read and written: 2 * 4 MiB / 64 GB/s = 131.072 us. Passes: 256 + 8 * 100 = 1056
// cycles; a reduction: 1000. A slot comes back a row, 2056, and three of eight chunks, 396, before it is wanted again:
// 2452 cycles of 8 B each; needed: 1000.
TEST(FuseRing, TakesDramsTimeWhereNothingElseCounts) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple_ring(), p, two_passes(1), bytes, four_ring_ctas);
    EXPECT_EQ(f.ctas, 4);
    EXPECT_NEAR(f.bytes_in_flight, 8 * 2452, 1);
    EXPECT_NEAR(f.bytes_in_flight_needed, 8000, 1);
    // Launch: the first load's 1000 cycles. The last row: (1000 + 2056) / 2 cycles. A row computes for 0.251 of DRAM's
    // time: (1 + 0.251^5)^(1/5) = 1.0002.
    EXPECT_NEAR(f.time.seconds * 1e6, 131.072 * 1.0002 + 1 + 1.528, 0.01);
    EXPECT_EQ(f.time.bound, Bound::dram);
}

// Five rows for four CTAs: one of them takes two, as three of them would, who last as long as six rows.
TEST(FuseRing, LastsAsLongAsTheBusiestCluster) {
    const Program p = rows_of(5, 32768);
    const FusedBytes bytes = {5 * 32768 * 2, 5 * 32768 * 2};
    const FuseFlow f = ring_flow(simple_ring(), p, two_passes(1), bytes, four_ring_ctas);
    EXPECT_NEAR(f.time.dram * 1e6, 6 * 32768 * 4 / 64e3, 1e-6);
}

// Of 101 rows 26 for the busiest of four CTAs, who then are 3.88 of them, 104 / 101. Scheduled dynamically, all have 25.25.
TEST(FuseRing, DynamicallyScheduledRowsAreOneMoreOrLess) {
    const Program p = rows_of(101, 32768);
    const FusedBytes bytes = {101 * 32768 * 2, 101 * 32768 * 2};
    const FuseHardware hw = simple_ring();
    RingLaunch launch = four_ring_ctas;
    const double least = 101 * 32768 * 4 / 64e9;
    EXPECT_NEAR(ring_flow(hw, p, two_passes(1), bytes, launch).time.dram, least * 104 / 101, 1e-9);
    launch.dynamic = true;
    EXPECT_NEAR(ring_flow(hw, p, two_passes(1), bytes, launch).time.dram, least, 1e-9);
    // Of ten and a half each nobody gets that far ahead: eleven.
    const Program few = rows_of(42, 32768);
    const FusedBytes less = {42 * 32768 * 2, 42 * 32768 * 2};
    EXPECT_NEAR(ring_flow(hw, few, two_passes(1), less, launch).time.dram, least * 44 / 101, 1e-9);
}

// Slots for one row and no more. 16 instructions an element: passes of 4096 + 800 = 4896 cycles, three eighths of them,
// 1836, between a slot's return and its next use. A load takes 4500: 2664 more than a row's 5896. Of DRAM's 8192 that is
// 1.0449 against 0.7197: (1 + 1.0449^5)^(1/5) = 1.1756 against 1.0359 times 131.072 us.
TEST(FuseRing, RunsDryWithoutSpareSlots) {
    FuseHardware hw = simple_ring();
    hw.loaded_latency = 4500;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch full = four_ring_ctas;
    full.slots = 4;
    const double spare_seconds = ring_flow(hw, p, two_passes(16), bytes, four_ring_ctas).time.seconds;
    const FuseFlow dry = ring_flow(hw, p, two_passes(16), bytes, full);
    EXPECT_NEAR((dry.time.seconds - spare_seconds) * 1e6, 131.072 * (1.1756 - 1.0359), 0.02);
    EXPECT_EQ(dry.time.bound, Bound::latency);
    // A single pass gives every slot back at once.
    ProgramWork sum = two_passes(16);
    sum.readings = 1;
    EXPECT_GT(ring_flow(hw, p, sum, bytes, full).bytes_in_flight, dry.bytes_in_flight);
}

// What only the last pass reads is asked for a chunk ahead, behind the stores of a chunk: a quarter of the row's
// 8192 cycles of DRAM, 2048. Of 16 instructions an element 8 stand in that pass: 8192 elements a chunk * 8 / 128 + 100 = 612
// cycles. Four chunks are each 1436 cycles longer and wait 250 for L2, but not where a thread has two vectors of a chunk: it
// asks for the next when the first is stored.
TEST(FuseRing, LoadsOfTheLastPassStandBehindItsStores) {
    FuseHardware hw = simple_ring();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    ProgramWork work = two_passes(16);
    work.full_bytes = 4;
    work.result = {8, 0};
    EXPECT_EQ(ring_epilogue(hw, p, work, four_ring_ctas, 8192).draining, 0);
    EXPECT_EQ(ring_epilogue(hw, p, work, four_ring_ctas, 8192).waiting, 0);
    RingLaunch epilogue = four_ring_ctas;
    epilogue.epilogue_bytes = 16384;
    EXPECT_NEAR(ring_epilogue(hw, p, work, epilogue, 8192).draining, 4 * 1436, 1);
    EXPECT_NEAR(ring_epilogue(hw, p, work, epilogue, 8192).waiting, 4 * 250, 1e-6);
    // A chunk that takes longer to compute hides the stores, and of L2's latency the rest.
    EXPECT_EQ(ring_epilogue(hw, p, work, epilogue, 4 * 500).draining, 0);
    EXPECT_NEAR(ring_epilogue(hw, p, work, epilogue, 4 * 500).waiting, 4 * (500 + 250 - 612), 1);
    RingLaunch two_vectors = epilogue;
    two_vectors.vectors_per_thread = 2;
    EXPECT_NEAR(ring_epilogue(hw, p, work, two_vectors, 8192).draining, 4 * 1436, 1);
    EXPECT_EQ(ring_epilogue(hw, p, work, two_vectors, 8192).waiting, 0);
}

// Weights are read by the last pass, too, where shared memory does not keep them.
TEST(FuseRing, WeightsThatAreNotKeptStandBehindStores) {
    FuseHardware hw = simple_ring();
    hw.l2_latency = 250;
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    ProgramWork work = two_passes(16);
    work.result = {8, 0};
    work.shared_loads = 1;
    RingLaunch kept = four_ring_ctas;
    kept.kept = true;
    EXPECT_NEAR(ring_epilogue(hw, p, work, four_ring_ctas, 8192).draining, 4 * 1436, 1);
    EXPECT_EQ(ring_epilogue(hw, p, work, kept, 8192).draining, 0);
    EXPECT_EQ(ring_epilogue(hw, p, work, kept, 8192).waiting, 0);
    EXPECT_GT(ring_flow(hw, p, work, bytes, four_ring_ctas).time.seconds,
              1.3 * ring_flow(hw, p, work, bytes, kept).time.seconds);
    EXPECT_EQ(ring_flow(hw, p, work, bytes, four_ring_ctas).time.bound, Bound::latency);
}

// 32768 elements of 16 instructions by 128 lanes: 4096 cycles, and 800 for chunks. Where each instruction waits 4 cycles for the one
// before, 512 threads still fill the lanes, 256 half of them.
TEST(FuseRing, FewWarpsWaitForTheirOwnResults) {
    FuseHardware hw = simple_ring();
    hw.arithmetic_latency = 4;
    const Program p = rows_of(64, 32768);
    RingLaunch ring = four_ring_ctas;
    EXPECT_NEAR(ring_passes_cycles(hw, p, two_passes(16), ring), 4096 + 800, 1);
    ring.threads_per_row = 256;
    EXPECT_NEAR(ring_passes_cycles(hw, p, two_passes(16), ring), 2 * 4096 + 800, 1);
    hw.arithmetic_latency = NAN;
    EXPECT_NEAR(ring_passes_cycles(hw, p, two_passes(16), ring), 4096 + 800, 1);
}

// 16 instructions an element: a row computes for 4896 + 1000 cycles of DRAM's 8192, and what both lose to one another
// is the less the more rows of slots there are: with four rows of them a slot comes back three rows and three of eight
// chunks before it is wanted.
TEST(FuseRing, MoreRowsBetweenLoseLess) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const auto lost = [&](double slots) {
        RingLaunch l = four_ring_ctas;
        l.slots = slots;
        const double ends = 1 + (1000 + 5896) / 2e3;
        return ring_flow(simple_ring(), p, two_passes(16), bytes, l).time.seconds * 1e6 - 131.072 - ends;
    };
    const double two = (5896 + 3 / 8.0 * 4896 - 1000) / 5896,
                 four = (3 * 5896 + 3 / 8.0 * 4896 - 1000) / 5896;
    EXPECT_NEAR(lost(8) / lost(16), four / two, 0.02);
    EXPECT_GT(lost(16), 1);
}

// Through device memory: 20 L2 latencies more than within a CTA.
TEST(FuseRing, GridReductionTakesL2Latencies) {
    FuseHardware hw = simple_ring();
    hw.l2_latency = 250;
    RingLaunch far = four_ring_ctas;
    far.cluster = 32;
    far.far = true;
    EXPECT_NEAR(
        ring_reduction_cycles(hw, two_passes(1), far) - ring_reduction_cycles(hw, two_passes(1), four_ring_ctas),
        20 * 250, 1e-6);
}

// 64 instructions an element: 32768 * 64 / 128 = 16384 cycles a row, twice DRAM's 8192.
TEST(FuseRing, InstructionsBindWhereTheyTakeLonger) {
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    const FuseFlow f = ring_flow(simple_ring(), p, two_passes(64), bytes, four_ring_ctas);
    EXPECT_NEAR(ring_passes_cycles(simple_ring(), p, two_passes(64), four_ring_ctas), 16384 + 8 * 100, 1);
    EXPECT_GT(f.time.seconds * 1e6, 16 * 16.384);
    EXPECT_EQ(f.time.bound, Bound::issue);
}

// Warp-specialised reduction: neither their reduction nor their pass stands between a row and the next one, while the
// ring has two rows of slots. With 6 slots for rows of 4 chunks the last chunk of a row is asked for when half of the
// one before is stored: half of that, a load, a chunk and a reduction lie between two rows. Each of the 64 elements of a chunk that a reducing
// thread has takes its 16 instructions.
TEST(FuseRing, WarpSpecialisedReductionHidesItsTime) {
    FuseHardware hw = simple_ring();
    const Program p = rows_of(64, 32768);
    const FusedBytes bytes = {64 * 32768 * 2, 64 * 32768 * 2};
    RingLaunch specialised = four_ring_ctas;
    specialised.reduction_threads = 128;
    const double reduction = 1000, chunk = 8192 / 128 * 16 + 100;
    EXPECT_NEAR(specialised_reduction_cycles(hw, p, two_passes(16), specialised, 5000, 1000),
                4 * chunk + reduction, 1);
    RingLaunch short_of_slots = specialised;
    short_of_slots.slots = 6;
    EXPECT_NEAR(specialised_reduction_cycles(hw, p, two_passes(16), short_of_slots, 5000, 1000),
                2500 + 1000 + chunk + reduction, 1);
    // Longer than those that store, with 4096 cycles of instructions and the chunks.
    const double row = 4 * chunk + reduction, full = row / 8192;
    const double ends = (ring_reduction_cycles(hw, two_passes(16), specialised) + row) / 2e3;
    EXPECT_NEAR(ring_flow(hw, p, two_passes(16), bytes, specialised).time.seconds * 1e6,
                131.072 * std::pow(1 + std::pow(full, 5), 1 / 5.0) + 1 + ends, 0.05);
}

}  // namespace
}  // namespace rooftile
