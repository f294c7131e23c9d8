#include "rooftile/measure/timing.hpp"

#include <gtest/gtest.h>

namespace rooftile {
namespace {

// 1.6e6 cycles in 1e6 ns are 1600 MHz.
TEST(ClockMhz, IsTheMedianOfTheSmsThatAnsweredTwice) {
    const std::vector<ClockStamp> before = {{100, 1000}, {500, 1000}, {0, 0}, {7, 1000}, {900, 1000}};
    const std::vector<ClockStamp> after = {{1'600'100, 1'001'000},
                                           {1'500'500, 1'001'000},
                                           {5'000'000, 1'001'000},  // not stamped before
                                           {0, 0},                  // not stamped after
                                           {1'700'900, 1'001'000}};
    EXPECT_NEAR(clock_mhz(before, after).value(), 1600, 1e-9);
    EXPECT_FALSE(clock_mhz(std::vector<ClockStamp>(3), std::vector<ClockStamp>(3)));
    EXPECT_FALSE(clock_mhz(after, before));
}

TEST(RecordedLaunches, AreWholeRotations) {
    EXPECT_EQ(recorded_launches(10, 20, 2000), 200);  // 200 us a rotation, 10 of them
    EXPECT_EQ(recorded_launches(700, 2, 2000), 4);    // 1400 us: two
    EXPECT_EQ(recorded_launches(5000, 3, 2000), 3);   // every set once, however long that takes
}

}  // namespace
}  // namespace rooftile
