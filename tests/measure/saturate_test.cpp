// Results of 8 bits: what PyTorch's scaled products give for the same sums, on an H100 with torch 2.11 (docs/facts.md 250).
#include "kernels/measure/saturate.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rooftile {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr Type e4m3 = Type::fp8_e4m3, e5m2 = Type::fp8_e5m2;

TEST(Saturated, WhatIsLargerIsTheLargestNumber) {
    for (const double x : {448.0, 504.0, 200704.0, infinity}) {
        EXPECT_EQ(saturated(x, e4m3), 448) << x;
        EXPECT_EQ(saturated(-x, e4m3), -448) << x;
    }
    EXPECT_EQ(saturated(447, e4m3), 447);
    EXPECT_EQ(saturated(200704, e5m2), 57344);
    EXPECT_EQ(saturated(-infinity, e5m2), -57344);
    EXPECT_TRUE(is_nan(saturated(nan, e4m3)));
}

TEST(Saturated, ExactResultsAreEqualBitForBit) {
    // 448 = 0x7e, 7 * 2^6; 57344 = 0x7b, 7 * 2^13; NaN of e4m3 has all ones; Inf of e5m2 is 0x7c.
    EXPECT_EQ(judge_exact_saturated(0x7e, 200704, e4m3).ratio, 0);
    EXPECT_EQ(judge_exact_saturated(0x7e, infinity, e4m3).ratio, 0);
    EXPECT_EQ(judge_exact_saturated(0xfe, -infinity, e4m3).ratio, 0);
    EXPECT_NE(judge_exact_saturated(0x7f, 200704, e4m3).ratio, 0) << "NaN, as .to() has it, is another result";
    EXPECT_EQ(judge_exact_saturated(0xff, nan, e4m3).ratio, 0);
    EXPECT_EQ(judge_exact_saturated(0x7b, 65536, e5m2).ratio, 0);
    EXPECT_NE(judge_exact_saturated(0x7c, 65536, e5m2).ratio, 0) << "Inf";
    EXPECT_NE(judge_exact_saturated(0x7d, 448, e4m3).ratio, 0) << "416 for 448";
}

TEST(Saturated, BoundedResultsAreWithinTheBoundOfTheNearestThatIs) {
    const ErrorModel model = error_model(512, true);
    const double sigma = 1;
    EXPECT_EQ(judge_bounded_saturated(0x7e, 1e6, sigma, model, e4m3).ratio, 0);
    EXPECT_EQ(judge_bounded_saturated(0x7e, infinity, infinity, model, e4m3).ratio, 0);
    EXPECT_GT(judge_bounded_saturated(0x78, 1e6, sigma, model, e4m3).ratio, 1) << "256 for 448";
    EXPECT_GT(judge_bounded_saturated(0x7f, 1e6, sigma, model, e4m3).ratio, 1) << "NaN for 448";
    EXPECT_GT(judge_bounded_saturated(0x7c, 60000, sigma, model, e5m2).ratio, 1) << "Inf for 57344";
    EXPECT_EQ(judge_bounded_saturated(0xff, nan, sigma, model, e4m3).ratio, 0);
    EXPECT_LE(judge_bounded_saturated(0x38, 1.05, sigma, model, e4m3).ratio, 1) << "1 for 1.05, half a unit being 0.0625";
    EXPECT_GT(judge_bounded_saturated(0x38, 2.5, sigma, model, e4m3).ratio, 1);
}

TEST(Saturated, AnExpressionsValueHasItsOwnErrorBesideTheRounding) {
    EXPECT_LE(judge_saturated(1, {1.06, 0}, e4m3).ratio, 1);
    EXPECT_GT(judge_saturated(1, {1.07, 0}, e4m3).ratio, 1);
    EXPECT_LE(judge_saturated(1, {1.07, 0.01}, e4m3).ratio, 1);
    EXPECT_EQ(judge_saturated(448, {1e9, 1}, e4m3).ratio, 0);
    EXPECT_EQ(judge_saturated(-57344, {-infinity, 0}, e5m2).ratio, 0);
    EXPECT_GT(judge_saturated(infinity, {1e9, 0}, e5m2).ratio, 1);
    EXPECT_EQ(judge_saturated(nan, {nan, 0}, e5m2).ratio, 0);
    EXPECT_GT(judge_saturated(nan, {1, 0}, e5m2).ratio, 1);
    EXPECT_TRUE(judge_saturated(1, {1, infinity}, e5m2).undecided);
}

}  // namespace
}  // namespace rooftile
