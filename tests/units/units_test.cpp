#include "rooftile/units.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <type_traits>

namespace rooftile {
namespace {

TEST(Units, QuotientOfBytesAndCyclesIsARate) {
    const auto rate = Bytes(128) / Cycles(4);
    static_assert(std::is_same_v<decltype(rate), const BytesPerCycle>);
    EXPECT_EQ(rate.value, 32);
}

TEST(Units, RateTimesCyclesIsBytesAgain) {
    // 64 B/clk for 300 cycles: 19200 B.
    const auto bytes = BytesPerCycle(64) * Cycles(300);
    static_assert(std::is_same_v<decltype(bytes), const Bytes>);
    EXPECT_EQ(bytes.value, 19200);
}

TEST(Units, EqualDimensionsDivideToANumber) {
    const auto ratio = Bytes(245760) / Bytes(49152);
    static_assert(std::is_same_v<decltype(ratio), const double>);
    EXPECT_EQ(ratio, 5);
}

TEST(Units, InverseDimensionsMultiplyToANumber) {
    // A clock of 2 GHz for 3 ns: 6 cycles; times 1/cycle it is the number 6.
    const auto cycles = Clock(2e9) * Seconds(3e-9);
    static_assert(std::is_same_v<decltype(cycles), const Cycles>);
    using PerCycle = Quantity<Dimension{.cycle = -1}>;
    const auto number = cycles * PerCycle(1);
    static_assert(std::is_same_v<decltype(number), const double>);
    EXPECT_DOUBLE_EQ(number, 6);
}

TEST(Units, RidgeOfPeakAndBandwidthIsAnIntensity) {
    // 100 TFLOP/s over 2 TB/s: 50 FLOP/B.
    const auto ridge = FlopRate(100e12) / Bandwidth(2e12);
    static_assert(std::is_same_v<decltype(ridge), const Intensity>);
    EXPECT_EQ(ridge.value, 50);
}

TEST(Units, EnergyOverTimeIsPower) {
    static_assert(std::is_same_v<decltype(Joules(1) / Seconds(1)), Watts>);
    EXPECT_EQ((Joules(1400) / Seconds(2)).value, 700);
}

TEST(Units, SumsAndDifferencesKeepTheUnit) {
    Bytes bytes(100);
    bytes += Bytes(50);
    bytes -= Bytes(30);
    EXPECT_EQ(bytes, Bytes(120));
    EXPECT_EQ(Bytes(100) - Bytes(40), Bytes(60));
    EXPECT_EQ(2 * Bytes(100) / 4, Bytes(50));
}

TEST(Units, CountsAreExactUpTo2To53) {
    const Bytes most(9007199254740992.0);
    EXPECT_EQ((most - Bytes(1)).value, 9007199254740991.0);
}

TEST(Units, OrderIsThatOfTheNumbers) {
    EXPECT_LT(Cycles(1), Cycles(2));
    EXPECT_GE(Cycles(2), Cycles(2));
}

TEST(Units, CeilDivOfExactAndInexactQuotients) {
    EXPECT_EQ(ceil_div(8, 4), 2);
    EXPECT_EQ(ceil_div(9, 4), 3);
    EXPECT_EQ(ceil_div(1, 4), 1);
    EXPECT_EQ(ceil_div(std::int64_t{1} << 40, 3), 366503875926);  // 2^40 = 3 * 366503875925 + 1
}

RC_GTEST_PROP(Units, CeilDivIsTheLeastQuotientThatCovers, ()) {
    const auto x = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
    const auto y = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 20);
    const auto q = ceil_div(x, y);
    RC_ASSERT(q * y >= x);
    RC_ASSERT((q - 1) * y < x);
}

RC_GTEST_PROP(Units, DividingAndMultiplyingByCyclesReturnsTheBytes, ()) {
    // Powers of two divide without rounding.
    const Bytes bytes(*rc::gen::inRange(1, 1 << 30));
    const Cycles cycles(1 << *rc::gen::inRange(0, 20));
    RC_ASSERT(bytes / cycles * cycles == bytes);
}

}  // namespace
}  // namespace rooftile
