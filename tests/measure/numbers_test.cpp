#include "kernels/measure/numbers.hpp"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rooftile {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Numbers, KnownBits) {
    EXPECT_EQ(value_of_bits(0x3f80, Type::bf16), 1.0);
    EXPECT_EQ(value_of_bits(0xc040, Type::bf16), -3.0);
    EXPECT_EQ(value_of_bits(0x0001, Type::bf16), std::ldexp(1.0, -133));   // 2^-126 x 2^-7
    EXPECT_EQ(value_of_bits(0x7f7f, Type::bf16), std::ldexp(255.0, 120));  // 255/128 x 2^127
    EXPECT_EQ(value_of_bits(0x3c00, Type::fp16), 1.0);
    EXPECT_EQ(value_of_bits(0x7bff, Type::fp16), 65504.0);
    EXPECT_EQ(value_of_bits(0x0001, Type::fp16), std::ldexp(1.0, -24));  // 2^-14 x 2^-10
    EXPECT_EQ(value_of_bits(0xfc00, Type::fp16), -inf);
    EXPECT_TRUE(std::isnan(value_of_bits(0x7c01, Type::fp16)));
    EXPECT_TRUE(std::isnan(value_of_bits(0xffff, Type::bf16)));
}

// bf16 numbers near 1 are 2^-7 = 0.0078125 apart: 1 = 0x3f80, 1.0078125 = 0x3f81, 1.015625 = 0x3f82.
TEST(Numbers, RoundsToNearestTiesToEven) {
    EXPECT_EQ(round_to_bits(1.00390625, Type::bf16), 0x3f80u);  // half way, 0x3f80 is even
    EXPECT_EQ(round_to_bits(1.01171875, Type::bf16), 0x3f82u);  // half way, 0x3f82 is even
    EXPECT_EQ(round_to_bits(std::nextafter(1.00390625, 2.0), Type::bf16), 0x3f81u);
    EXPECT_EQ(round_to_bits(-1.00390625, Type::bf16), 0xbf80u);
    EXPECT_EQ(round_to_bits(1.998046875, Type::bf16), 0x4000u);  // 2 - 2^-9 carries into the exponent
    EXPECT_EQ(round_to_bits(2049.0, Type::fp16), 0x6800u);       // 2048; steps of 2
    EXPECT_EQ(round_to_bits(2051.0, Type::fp16), 0x6802u);       // 2052
}

TEST(Numbers, RoundsAtTheEnds) {
    EXPECT_EQ(round_to_bits(65519.99, Type::fp16), 0x7bffu);
    EXPECT_EQ(round_to_bits(65520.0, Type::fp16), 0x7c00u);  // 65504 + 32 / 2
    EXPECT_EQ(overflow_threshold(Type::fp16), 65520.0);
    EXPECT_EQ(round_to_bits(-1e300, Type::bf16), 0xff80u);
    EXPECT_EQ(round_to_bits(std::ldexp(1.0, -25), Type::fp16), 0u);  // half the least: a tie, 0 is even
    EXPECT_EQ(round_to_bits(std::ldexp(1.5, -25), Type::fp16), 1u);
    EXPECT_EQ(round_to_bits(std::ldexp(3.0, -25), Type::fp16), 2u);  // 1.5 of the least: a tie, 2 is even
    EXPECT_EQ(round_to_bits(std::ldexp(1.0, -26), Type::fp16), 0u);
    EXPECT_EQ(round_to_bits(-0.0, Type::fp16), 0x8000u);
    EXPECT_EQ(round_to_bits(5e-324, Type::bf16), 0u);                        // a subnormal double
    EXPECT_EQ(round_to_bits(std::ldexp(2047.0, -25), Type::fp16), 0x0400u);  // just below 2^-14, rounds to it
    EXPECT_EQ(class_of_bits(round_to_bits(NAN, Type::fp16), Type::fp16), NumberClass::nan);
}

TEST(Numbers, EveryPatternComesBack) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        for (unsigned bits = 0; bits < 0x10000u; ++bits) {
            const double x = value_of_bits(bits, type);
            if (class_of_bits(bits, type) == NumberClass::nan) {
                EXPECT_TRUE(std::isnan(x));
            } else {
                ASSERT_EQ(round_to_bits(x, type), bits);
                EXPECT_EQ(class_of(x), class_of_bits(bits, type));
            }
        }
    }
}

// An independent oracle: half way between neighbouring patterns, found by arithmetic alone.
TEST(Numbers, HalfWayGoesToTheEvenNeighbourEverywhere) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        for (unsigned bits = 0; bits + 1 < float_format(type).infinity(); ++bits) {
            const double low = value_of_bits(bits, type), high = value_of_bits(bits + 1, type);
            const double middle = low + (high - low) / 2;  // exact in a double
            ASSERT_EQ(round_to_bits(middle, type), bits % 2 == 0 ? bits : bits + 1);
            ASSERT_EQ(round_to_bits(std::nextafter(middle, 0.0), type), bits);
            ASSERT_EQ(round_to_bits(std::nextafter(middle, inf), type), bits + 1);
        }
    }
}

RC_GTEST_PROP(Numbers, RoundingErrsByAtMostItsUnit, (double x)) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        if (std::abs(x) >= overflow_threshold(type)) continue;
        const double error = std::abs(value_of_bits(round_to_bits(x, type), type) - x);
        RC_ASSERT(error <= unit_roundoff(type) * std::abs(x) + half_min_subnormal(type));
    }
}

TEST(Numbers, Constants) {
    EXPECT_EQ(unit_roundoff(Type::bf16), 1.0 / 256);   // 8 significant bits
    EXPECT_EQ(unit_roundoff(Type::fp16), 1.0 / 2048);  // 11
    EXPECT_EQ(half_min_subnormal(Type::fp16), std::ldexp(1.0, -25));
    EXPECT_EQ(half_min_subnormal(Type::bf16), std::ldexp(1.0, -134));
    EXPECT_EQ(accumulation_error(1), 3 * std::ldexp(1.0, -23));        // 1 + 2
    EXPECT_EQ(accumulation_error(4096), 6144 * std::ldexp(1.0, -23));  // 4096 + 2 x 1024
}

// |ref| = 100, sum|a||b| = 400, gamma = 0.01: accumulated 4; bf16: 4 + (100 + 4) / 256 = 4.40625.
TEST(Judge, BoundByHand) {
    const double bound = error_bound(-100, 400, 0.01, Type::bf16);
    EXPECT_NEAR(bound, 4.40625, 1e-12);
    EXPECT_LE(judge_bounded(round_to_bits(104, Type::bf16), 100, 400, 0.01, Type::bf16).ratio, 1);
    EXPECT_GT(judge_bounded(round_to_bits(105, Type::bf16), 100, 400, 0.01, Type::bf16).ratio, 1);
    EXPECT_NEAR(judge_bounded(round_to_bits(98, Type::bf16), 100, 400, 0.01, Type::bf16).ratio, 2 / 4.40625,
                1e-12);
}

TEST(Judge, IsScaleFree) {
    // The same numbers 2^-20 times as large give the same verdict, far from subnormals.
    const double scale = std::ldexp(1.0, -20);
    const double one = judge_bounded(round_to_bits(103, Type::bf16), 100, 400, 0.01, Type::bf16).ratio;
    const double small =
        judge_bounded(round_to_bits(103 * scale, Type::bf16), 100 * scale, 400 * scale, 0.01, Type::bf16)
            .ratio;
    EXPECT_NEAR(one, small, 1e-9);
}

TEST(Judge, ClassesMustAgree) {
    const unsigned nan = 0x7fff, plus = 0x7f80, minus = 0xff80, one = 0x3f80;
    const auto ratio = [](unsigned got, double reference) {
        return judge_bounded(got, reference, 1, 1e-6, Type::bf16).ratio;
    };
    EXPECT_EQ(ratio(nan, 1.0), inf);
    EXPECT_EQ(ratio(0xffff, 1.0), inf);  // the poison
    EXPECT_EQ(ratio(plus, 1.0), inf);
    EXPECT_EQ(ratio(one, NAN), inf);
    EXPECT_EQ(ratio(one, inf), inf);
    EXPECT_EQ(ratio(minus, inf), inf);
    EXPECT_EQ(ratio(nan, inf), inf);
    EXPECT_EQ(ratio(nan, NAN), 0);
    EXPECT_EQ(ratio(0xffff, NAN), 0);
    EXPECT_EQ(ratio(plus, inf), 0);
    EXPECT_EQ(ratio(minus, -inf), 0);
}

TEST(Judge, BeyondTheTypeIsInfinite) {
    const double gamma = 1e-6;
    EXPECT_EQ(judge_bounded(0x7c00, 70000, 70000, gamma, Type::fp16).ratio, 0);
    EXPECT_EQ(judge_bounded(0x7bff, 70000, 70000, gamma, Type::fp16).ratio, inf);
    EXPECT_EQ(judge_bounded(0xfc00, 70000, 70000, gamma, Type::fp16).ratio, inf);
    EXPECT_EQ(judge_bounded(0xfc00, -70000, 70000, gamma, Type::fp16).ratio, 0);
    // The threshold 65520 lies within the accumulation's reach of 65519.99: both are right.
    EXPECT_EQ(judge_bounded(0x7c00, 65519.99, 65520, gamma, Type::fp16).ratio, 0);
    EXPECT_LE(judge_bounded(0x7bff, 65519.99, 65520, gamma, Type::fp16).ratio, 1);
    EXPECT_EQ(judge_bounded(0x7c00, 65000, 65520, gamma, Type::fp16).ratio, inf);
}

TEST(Judge, ExactMeansEveryBit) {
    EXPECT_EQ(judge_exact(0x3f80, 1.0, Type::bf16).ratio, 0);
    EXPECT_EQ(judge_exact(0x3f81, 1.0, Type::bf16).ratio, inf);
    EXPECT_EQ(judge_exact(0x3f80, 1.00390625, Type::bf16).ratio, 0);  // rounds to even
    EXPECT_EQ(judge_exact(0x3f81, 1.00390625, Type::bf16).ratio, inf);
    EXPECT_EQ(judge_exact(0x8000, 0.0, Type::bf16).ratio, 0);  // either zero
    EXPECT_EQ(judge_exact(0xffff, 0.0, Type::bf16).ratio, inf);
    EXPECT_EQ(judge_exact(0x7c00, 1e6, Type::fp16).ratio, 0);
}

}  // namespace
}  // namespace rooftile
