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
}

TEST(Numbers, UnitInLastPlaceIsTheGapToTheNextNumber) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        for (unsigned bits = 0; bits + 1 < float_format(type).infinity(); ++bits) {
            const double x = value_of_bits(bits, type), next = value_of_bits(bits + 1, type);
            ASSERT_EQ(unit_in_last_place(x, type), next - x) << bits;
            ASSERT_EQ(unit_in_last_place(-x, type), next - x) << bits;
        }
    }
}

// K = 4096: 1024 blocks, 6144 cuts. u = 2^-23. 9 u (1024 / 2 + 9 sqrt(6144)) = 9 u (512 + 705.45) = 10957 u.
// Root mean square: bias 0.75 / 2 x 1025 / sqrt(3) = 221.92 u, cuts sqrt((3072 + 6) / 3) = 32.03 u: 224.22 u.
TEST(ErrorModel, ByHand) {
    const ErrorModel model = error_model(4096);
    EXPECT_NEAR(model.most * 0x1p23, 10957.1, 0.5);
    EXPECT_NEAR(model.rms * 0x1p23, 224.22, 0.01);
    EXPECT_EQ(model.uneven, 0.125 + 1.0 / 4096);
    // Far below what a bf16 rounding makes (2^-9 at most half an ulp): the old bound, 6144 u sum|a||b|, was 0.3 sigma.
    EXPECT_LT(error_model(28672).most, 0.01);
}

// Of 8 bits, K = 4096, u = 2^-13, in 32 groups of 4 blocks: 9 u (2 sqrt(32) + 9 sqrt(136)) = 9 u (11.314 + 104.957) = 1046.4 u, and of 32 sums in
// fp32 9 x 2^-23 (4 + 9 sqrt(48)) = 0.58 u. Root mean square: bias 0.375 x 5 / sqrt(3) = 1.083 u, cuts sqrt((68 + 6) / 3) = 4.967 u: 5.083 u. Left in
// the matrix units: 9 u (64 + 9 sqrt(4352)) = 5919.6 u.
TEST(ErrorModel, PromotedByHand) {
    const ErrorModel fast = error_model(4096, true), promoted = error_model(4096, true, true);
    EXPECT_NEAR(promoted.most * 0x1p13, 1047.0, 0.1);
    EXPECT_NEAR(promoted.rms * 0x1p13, 5.083, 0.001);
    EXPECT_NEAR(fast.most * 0x1p13, 5919.6, 0.5);
    EXPECT_EQ(error_model(128, true, true).most, error_model(128, true).most) << "one group";
}

// 100 elements of w = 0.01: sum of w 1, of squares 0.01, rms of accumulation 0.1, none of it uneven.
// Rounding 1 + 9 sqrt(0.008) + 54 x 0.01 = 2.34498; accumulation 0.01 (100 + 9 sqrt(200) + 81) = 3.08279;
// together 2 x 9 x 0.1 x (300 x 0.01)^(1/4) = 2.36893.
TEST(ErrorModel, AllowedErrorsByHand) {
    ExpectedErrors sum{};
    for (int i = 0; i < 100; ++i) add(sum, {1, 0.01, 0.0001, 0.01});
    EXPECT_NEAR(sum.rounding, 1, 1e-12);
    EXPECT_EQ(sum.rounding_most, 0.01);
    EXPECT_NEAR(allowed_errors(sum, {1, 0.1, 0}), 2.34498 + 3.08279 + 2.36893, 1e-4);
    EXPECT_NEAR(allowed_errors(sum, {1, 0.1, 0.5}), 2.84498 + 3.08279 + 2.36893, 1e-4);
}

// 3 lies in [2, 4): ulp 2^-6 of bf16; sigma 2: (2^-7)^2 / 12.
TEST(ErrorModel, ExpectedErrorsByHand) {
    const ErrorModel model = error_model(64);
    const ExpectedErrors one = expected_error(-3, 2, model, Type::bf16);
    EXPECT_EQ(one.elements, 1);
    EXPECT_EQ(one.rounding, 0x1p-14 / 12);
    EXPECT_EQ(one.rounding_squares, one.rounding * one.rounding);
    EXPECT_EQ(one.rounding_most, one.rounding);
    // An element near 4 may have been accumulated beyond it.
    EXPECT_EQ(expected_error(std::nextafter(4.0, 0.0), 2, model, Type::bf16).rounding, 4 * one.rounding);
    // What may be Inf or is none at all counts nothing, nor does what lies below the normal range.
    for (const double out : {65519.99, inf, -inf, static_cast<double>(NAN)})
        EXPECT_EQ(expected_error(out, 100, model, Type::fp16).elements, 0) << out;
    EXPECT_EQ(expected_error(1, NAN, model, Type::fp16).elements, 0);
    EXPECT_EQ(expected_error(0, 0, model, Type::fp16).elements, 0);
    EXPECT_EQ(expected_error(1e-5, 1e-5, model, Type::fp16).elements, 0);
    EXPECT_EQ(expected_error(1e-5, 1e-5, model, Type::bf16).elements, 1);
}

constexpr ErrorModel with_most(double most) { return {most, most / 10, 0.125}; }

// |ref| = 100, sigma = 400, most = 0.01: accumulated 4; bf16: 4 + (100 + 4) / 256 = 4.40625.
TEST(Judge, BoundByHand) {
    const ErrorModel model = with_most(0.01);
    const double bound = error_bound(-100, 400, model, Type::bf16);
    EXPECT_NEAR(bound, 4.40625, 1e-12);
    EXPECT_LE(judge_bounded(round_to_bits(104, Type::bf16), 100, 400, model, Type::bf16).ratio, 1);
    EXPECT_GT(judge_bounded(round_to_bits(105, Type::bf16), 100, 400, model, Type::bf16).ratio, 1);
    const Verdict two_off = judge_bounded(round_to_bits(98, Type::bf16), 100, 400, model, Type::bf16);
    EXPECT_NEAR(two_off.ratio, 2 / 4.40625, 1e-12);
    EXPECT_EQ(two_off.error, 2);
}

TEST(Judge, IsScaleFree) {
    // The same numbers 2^-20 times as large give the same verdict, far from subnormals.
    const double scale = std::ldexp(1.0, -20);
    const double one =
        judge_bounded(round_to_bits(103, Type::bf16), 100, 400, with_most(0.01), Type::bf16).ratio;
    const double small = judge_bounded(round_to_bits(103 * scale, Type::bf16), 100 * scale, 400 * scale,
                                       with_most(0.01), Type::bf16)
                             .ratio;
    EXPECT_NEAR(one, small, 1e-9);
}

TEST(Judge, ClassesMustAgree) {
    const unsigned nan = 0x7fff, plus = 0x7f80, minus = 0xff80, one = 0x3f80;
    const auto ratio = [](unsigned got, double reference) {
        return judge_bounded(got, reference, 1, with_most(1e-6), Type::bf16).ratio;
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
    const ErrorModel model = with_most(1e-6);
    EXPECT_EQ(judge_bounded(0x7c00, 70000, 70000, model, Type::fp16).ratio, 0);
    EXPECT_EQ(judge_bounded(0x7bff, 70000, 70000, model, Type::fp16).ratio, inf);
    EXPECT_EQ(judge_bounded(0xfc00, 70000, 70000, model, Type::fp16).ratio, inf);
    EXPECT_EQ(judge_bounded(0xfc00, -70000, 70000, model, Type::fp16).ratio, 0);
    // The threshold 65520 lies within the accumulation's reach of 65519.99: both are right.
    EXPECT_EQ(judge_bounded(0x7c00, 65519.99, 65520, model, Type::fp16).ratio, 0);
    EXPECT_LE(judge_bounded(0x7bff, 65519.99, 65520, model, Type::fp16).ratio, 1);
    EXPECT_EQ(judge_bounded(0x7c00, 65000, 65520, model, Type::fp16).ratio, inf);
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
