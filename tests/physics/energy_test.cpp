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

}  // namespace
}  // namespace rooftile
