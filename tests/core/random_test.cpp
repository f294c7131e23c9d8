// The same numbers from the same seed, whichever compiler and library made the program.
#include "rooftile/core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rooftile {
namespace {

// The engine's 10000th number by [rand.predef] of the C++ standard.
TEST(Random, TheEngineIsTheStandards) {
    Random random(5489);
    for (int i = 1; i < 10000; ++i) random.bits();
    EXPECT_EQ(random.bits(), 9981545732273789042u);
}

TEST(Random, StaysWithinItsBounds) {
    Random random(1);
    for (int i = 0; i < 10000; ++i) {
        EXPECT_LT(random.pick(7), 7u);
        const std::int64_t whole = random.whole(-3, 3);
        EXPECT_TRUE(whole >= -3 && whole <= 3);
        const double even = random.uniform(2.5, 4.5), wide = random.log_uniform(2, 1 << 20);
        EXPECT_TRUE(even >= 2.5 && even <= 4.5);
        EXPECT_TRUE(wide >= 2 && wide <= 1 << 20);
    }
}

// Half of the numbers of [1, 2^20] lie below 2^10, and half of [0, 1] below 1/2: 10000 tosses are within 5 sigma = 250.
TEST(Random, SpreadsEvenly) {
    Random random(2);
    int below = 0, low = 0;
    for (int i = 0; i < 10000; ++i)
        below += random.log_uniform(1, 1 << 20) < 1024, low += random.uniform(0, 1) < 0.5;
    EXPECT_NEAR(below, 5000, 250);
    EXPECT_NEAR(low, 5000, 250);
}

}  // namespace
}  // namespace rooftile
