#include "rooftile/physics/roofs.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

Machine roofs_machine() {
    Machine m = machine_by_id("h200-sxm");
    for (const char* number : {"l2.bandwidth=10 TB/s", "dram.bandwidth=5 TB/s", "launch.gap_stream=2 us",
                               "sm.count=100 SMs", "clock.boost=1 GHz", "shared.bandwidth=128 B/clk/SM"})
        set_number(m, number);
    return m;
}

double seconds_of(const Demand& demand, Bound bound, const Conditions& conditions = {}) {
    for (const UnitTime& unit : roof_time(demand, roofs_machine(), conditions).units)
        if (unit.bound == bound) return unit.seconds;
    return 0;
}

TEST(RoofTime, EachUnitTakesItsWorkAtItsRate) {
    Demand demand;
    demand.l2_bytes = 1e9;
    demand.shared_bytes = 1.28e9;
    demand.tensors = {{.tensor = "x", .footprint_bytes = 1e9, .dram_bytes = 4e9}};
    demand.tiles = 1000;
    demand.launches = 3;
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::l2), 1e-4);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::shared), 1e-4);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::dram), 2e-4);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::launch), 6e-6);
    EXPECT_EQ(roof_time(demand, roofs_machine()).bound(), Bound::dram);
    // What L2 holds is asked of it all the same.
    EXPECT_EQ(seconds_of(demand, Bound::dram, {.held_in_l2 = {"x"}}), 0);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::l2, {.held_in_l2 = {"x"}}), 1e-4);
}

// Fewer tiles than SMs leave the others idle.
TEST(RoofTime, ATileHasOneSm) {
    Demand demand;
    demand.shared_bytes = 1.28e9;
    demand.tiles = 10;
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::shared), 1e-3);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::shared, {.sm_share = 0.5}), 1e-3);
    EXPECT_DOUBLE_EQ(seconds_of(demand, Bound::shared, {.sm_share = 0.05}), 2e-3);
}

TEST(RoofTime, UnknownRatesAreNamed) {
    Demand demand;
    demand.l2_bytes = 1;
    const RoofTime roof = roof_time(demand, Machine());
    EXPECT_FALSE(roof.seconds());
    EXPECT_EQ(roof.unknown, (std::vector<std::string>{"l2.bandwidth", "launch.gap_stream"}));
}

}  // namespace
}  // namespace rooftile
