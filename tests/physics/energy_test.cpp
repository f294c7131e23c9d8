#include "rooftile/physics/energy.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

Machine machine() {
    Machine m = machine_by_id("h200-sxm");
    for (const char* number : {"clock.sustained.bf16=1 GHz", "energy.flop.bf16=1 pJ/FLOP", "energy.fill=10 pJ/B",
                               "energy.shared_read=1 pJ/B", "energy.dram=100 pJ/B", "power.static=100 W",
                               "energy.exponent=2 1"})
        set_number(m, number);
    return m;
}

Demand demand() {
    Demand d;
    d.matrix = {{"wgmma", "bf16", "fp32", 2e12}};
    d.filled_bytes = 1e10;
    d.shared_read_bytes = 2e10;
    d.dram_bytes = 1e9;
    return d;
}

TEST(Energy, IsTheSumOfItsTerms) {
    const Energy e = energy_of(demand(), machine(), {.seconds = 0.01, .clock_hz = 1e9});
    EXPECT_DOUBLE_EQ(e.matrix.value(), 2);
    EXPECT_DOUBLE_EQ(e.fill.value(), 0.12);
    EXPECT_DOUBLE_EQ(e.dram.value(), 0.1);
    EXPECT_DOUBLE_EQ(e.idle.value(), 1);
    EXPECT_DOUBLE_EQ(e.total.value(), 3.22);
    EXPECT_DOUBLE_EQ(e.watts.value(), 322);
    EXPECT_DOUBLE_EQ(e.joules_per_tflop.value(), 1.61);
    EXPECT_TRUE(e.unknown.empty());
}

// Twice the clock takes four times the energy of the work, and none more of what flows anyway.
TEST(Energy, GrowsWithTheClock) {
    const Energy e = energy_of(demand(), machine(), {.seconds = 0.005, .clock_hz = 2e9});
    EXPECT_DOUBLE_EQ(e.total.value(), 4 * 2.22 + 0.5);
}

TEST(Energy, WhatIsUnknownIsNamed) {
    Machine m = machine();
    m.facts.erase("energy.dram");
    const Energy e = energy_of(demand(), m, {.seconds = 0.01, .clock_hz = 1e9});
    EXPECT_EQ(e.unknown, std::vector<std::string>{"energy.dram"});
    EXPECT_TRUE(e.matrix);
    EXPECT_FALSE(e.dram);
    EXPECT_FALSE(e.total);
}

/// A copy of 1 GB each way with a hundred million instructions of one lane, at the clock of the energies.
Demand copy() {
    Demand d;
    d.loaded_bytes = 2e9, d.dram_bytes = 2e9;
    d.issue_slots = 1e8;
    return d;
}

// 2e9 B x 10 pJ from L2, 2e9 x 100 from DRAM, 1e8 x 5 pJ of instructions, and 100 W for a millisecond.
TEST(Energy, InstructionsAndLoadsHaveTheirs) {
    Machine m = machine();
    set_number(m, "energy.instruction=5 pJ/op");
    m.facts.erase("power.sustained");
    const Energy e = energy_of(copy(), m, {.seconds = 0.001, .clock_hz = 1e9});
    EXPECT_DOUBLE_EQ(e.instructions.value(), 0.0005);
    EXPECT_DOUBLE_EQ(e.fill.value(), 0.02);
    EXPECT_DOUBLE_EQ(e.dram.value(), 0.2);
    EXPECT_DOUBLE_EQ(e.total.value(), 0.3205);
    EXPECT_FALSE(e.joules_per_tflop);
    // Twice the clock: four times all but the static power.
    EXPECT_DOUBLE_EQ(energy_of(copy(), m, {.seconds = 0.001, .clock_hz = 2e9}).total.value(), 4 * 0.2205 + 0.1);
    // What it has none of need not be known; what it has must be.
    m.facts.erase("energy.flop.bf16"), m.facts.erase("energy.shared_read");
    EXPECT_TRUE(energy_of(copy(), m, {.seconds = 0.001, .clock_hz = 1e9}).total);
    m.facts.erase("energy.instruction");
    EXPECT_EQ(energy_of(copy(), m, {.seconds = 0.001, .clock_hz = 1e9}).unknown, std::vector<std::string>{"energy.instruction"});
}

// 220 W of work and 100 W that flow anyway at a limit of 200 W: memory takes its time, so the clock falls until it fits.
TEST(Energy, NoMorePowerThanTheLimitWithoutProducts) {
    Machine m = machine();
    set_number(m, "energy.instruction=5 pJ/op");
    set_number(m, "power.sustained=200 W");
    const Energy e = energy_of(copy(), m, {.seconds = 0.001, .clock_hz = 1e9});
    EXPECT_DOUBLE_EQ(e.watts.value(), 200);
    EXPECT_DOUBLE_EQ(e.idle.value(), 0.1);
    EXPECT_DOUBLE_EQ(e.dram.value(), 0.1 * 0.2 / 0.2205);
}

}  // namespace
}  // namespace rooftile
