// The fp64 reference: values by hand, PyTorch's way with NaN and Inf, and bounds that are neither too wide
// nor broken by fp32 arithmetic.
#include "rooftile/expression/evaluate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/measure/philox.hpp"
#include "rooftile/expression/expression.hpp"
#include "tests/fuse/shifted_rows.hpp"

namespace rooftile {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The first output of `text` on one tensor x of the given shape.
BoundedTensor result(std::string_view text, const std::string& x, const std::vector<double>& values) {
    const std::vector<TensorDeclaration> tensors = {tensor_declaration(x)};
    const ExpressionGraph problem = expression_graph(text, tensors);
    const std::vector<double> inputs[] = {values};
    return evaluate(problem, inputs)[0];
}

TEST(Evaluate, GeluAtSmallAndLargeArguments) {
    // gelu(1) = Phi(1) = 0.8413447460685429; gelu(-1) = -(1 - Phi(1)) = -0.15865525393145705.
    const BoundedTensor y = result("y = gelu(x)", "x:fp32[7]", {1, -1, 10.1, 100, 1e4, -10.1, 0});
    EXPECT_NEAR(y[0].value, 0.8413447460685429, 1e-15);
    EXPECT_NEAR(y[1].value, -0.15865525393145705, 1e-15);
    EXPECT_EQ(y[2].value, 10.1);
    EXPECT_EQ(y[3].value, 100);
    EXPECT_EQ(y[4].value, 1e4);
    // Mills' ratio: Phi(-a) = phi(a) / a (1 - 1 / a^2 + 3 / a^4 - 15 / a^6 + ...), so a Phi(-a) is phi(10.1)
    // * 0.99047.
    const double density = std::exp(-0.5 * 10.1 * 10.1) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(y[5].value / -density, 1 - 1 / 102.01 + 3 / std::pow(102.01, 2) - 15 / std::pow(102.01, 3),
                1e-6);
    EXPECT_EQ(y[6].value, 0);
    for (const Bounded& b : y) EXPECT_LE(b.error, 1e-4 * std::fabs(b.value) + 1e-36);
    const BoundedTensor t = result("y = gelu_tanh(x)", "x:fp32[4]", {1, 10.1, 100, 1e4});
    // 0.5 (1 + tanh(0.79788456 * 1.044715)) = 0.841191990607...
    EXPECT_NEAR(t[0].value, 0.8411919906082768, 1e-9);
    EXPECT_EQ(t[1].value, 10.1);
    EXPECT_EQ(t[3].value, 1e4);
}

TEST(Evaluate, InfinitiesAsInPyTorch) {
    const BoundedTensor g = result("y = gelu(x)", "x:fp32[3]", {infinity, -infinity, std::nan("")});
    EXPECT_EQ(g[0].value, infinity);
    EXPECT_TRUE(std::isnan(g[1].value));  // -Inf * 0
    EXPECT_TRUE(std::isnan(g[2].value));
    const BoundedTensor s =
        result("y = softmax(x)", "x:fp32[3,2]", {infinity, 1, -infinity, -infinity, -infinity, 0});
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(s[size_t(i)].value)) << i;
    EXPECT_EQ(s[4].value, 0);
    EXPECT_EQ(s[5].value, 1);
    const BoundedTensor l =
        result("y = logsumexp(x)", "x:fp32[3,2]", {infinity, 1, -infinity, -infinity, -infinity, 0});
    EXPECT_EQ(l[0].value, infinity);
    EXPECT_EQ(l[1].value, -infinity);
    EXPECT_EQ(l[2].value, 0);
    EXPECT_TRUE(std::isnan(result("y = x**0.5", "x:fp32[1]", {-infinity})[0].value));  // C's pow says Inf
    for (const BoundedTensor* t : {&g, &s, &l})
        for (const Bounded& b : *t) EXPECT_LT(b.error, 1e-3);  // all of them are decided
    for (const char* text : {"y = layernorm(x)", "y = rmsnorm(x)"}) {
        const BoundedTensor n = result(text, "x:fp32[1,3]", {infinity, 1, 2});
        EXPECT_TRUE(std::isnan(n[0].value)) << text;
        for (const Bounded& b : n) EXPECT_LT(b.error, 1e-3) << text;  // decided
    }
    const BoundedTensor mean = result("y = mean(x)", "x:fp32[2,2]", {infinity, 1, infinity, -infinity});
    EXPECT_EQ(mean[0].value, infinity);
    EXPECT_TRUE(std::isnan(mean[1].value));
    for (const Bounded& b : mean) EXPECT_EQ(b.error, 0);  // neither is undecided
    const BoundedTensor m = result("y = max(x)", "x:fp32[2,2]", {std::nan(""), 1, -infinity, -infinity});
    EXPECT_TRUE(std::isnan(m[0].value));
    EXPECT_EQ(m[1].value, -infinity);
    const BoundedTensor a = result("y = argmax(x)", "x:fp32[3,3]",
                                   {1, std::nan(""), 2, 5, 5, 1, -infinity, -infinity, -infinity});
    EXPECT_EQ(a[0].value, 1);
    EXPECT_EQ(a[1].value, 0);  // the first of equals
    EXPECT_EQ(a[2].value, 0);
}

TEST(Evaluate, RowsByHand) {
    const BoundedTensor s = result("y = softmax(x)", "x:fp32[1,2]", {0, std::log(3.0)});
    EXPECT_NEAR(s[0].value, 0.25, 1e-15);
    EXPECT_NEAR(s[1].value, 0.75, 1e-15);
    // mean 2, variance 1: (1 - 2) / 1 and (3 - 2) / 1.
    const BoundedTensor n = result("y = layernorm(x, eps=0)", "x:fp32[1,2]", {1, 3});
    EXPECT_NEAR(n[0].value, -1, 1e-15);
    EXPECT_NEAR(n[1].value, 1, 1e-15);
    // mean of squares (9 + 16) / 2 = 12.5.
    const BoundedTensor r = result("y = rmsnorm(x, eps=0)", "x:fp32[1,2]", {3, 4});
    EXPECT_NEAR(r[0].value, 3 / std::sqrt(12.5), 1e-15);
    EXPECT_EQ(result("y = sum_all(x)", "x:fp32[2,2]", {1, 2, 3, 4})[0].value, 10);
    EXPECT_EQ(result("y = x - mean(x)", "x:fp32[2,2]", {1, 2, 3, 5})[3].value, 1);
}

// Rows {1, 2, -3} and {10, 20, 3}; of [2,1,3] the same.
TEST(Evaluate, ColumnsByHand) {
    const double sums[] = {11, 22, 0}, greatest[] = {10, 20, 3};
    for (const char* x : {"x:fp32[2,3]", "x:fp32[2,1,3]", "x:fp32[1,2,3]"}) {
        const BoundedTensor sum = result("y = column_sum(x)", x, {1, 2, -3, 10, 20, 3});
        ASSERT_EQ(sum.size(), 3u);
        for (size_t c = 0; c < 3; ++c) EXPECT_EQ(sum[c].value, sums[c]) << x;
        // Of 2 additions as of 64 and fewer: 64.0625 * 2^-24 of the magnitudes' sum.
        EXPECT_NEAR(sum[2].error, 64.0625 * 6 * std::exp2(-24), 1e-12);
        const BoundedTensor mean = result("y = column_mean(x)", x, {1, 2, -3, 10, 20, 3});
        for (size_t c = 0; c < 3; ++c) EXPECT_EQ(mean[c].value, sums[c] / 2) << x;
        const BoundedTensor max = result("y = column_max(x)", x, {1, 2, -3, 10, 20, 3});
        for (size_t c = 0; c < 3; ++c) EXPECT_EQ(max[c].value, greatest[c]) << x;
    }
    EXPECT_EQ(result("y = column_sum(x) * 2 + 1.0", "x:fp32[2,1]", {4, 5})[0].value, 19);
    EXPECT_EQ(result("y = column_sum(x)", "x:fp32[0,2]", {})[1].value, 0);
    EXPECT_TRUE(std::isnan(result("y = column_mean(x)", "x:fp32[0,2]", {})[1].value));
}

TEST(Evaluate, ColumnsWithWhatIsNotFinite) {
    const BoundedTensor sum = result("y = column_sum(x)", "x:fp32[2,4]", {infinity, infinity, std::nan(""), 3e38, 1, -infinity, 1, 3e38});
    EXPECT_EQ(sum[0].value, infinity);
    EXPECT_TRUE(std::isnan(sum[1].value));
    EXPECT_TRUE(std::isnan(sum[2].value));
    EXPECT_EQ(sum[3].error, infinity);  // fp64 holds 6e38, fp32 does not
    const BoundedTensor max = result("y = column_max(x)", "x:fp32[2,3]", {infinity, std::nan(""), -infinity, 1, 2, -infinity});
    EXPECT_EQ(max[0].value, infinity);
    EXPECT_TRUE(std::isnan(max[1].value));
    EXPECT_EQ(max[2].value, -infinity);
}

TEST(Evaluate, BroadcastsAnyAxis) {
    const std::vector<TensorDeclaration> tensors = {tensor_declaration("a:fp32[2,1,2]"),
                                                    tensor_declaration("b:fp32[3,1]")};
    const ExpressionGraph p = expression_graph("y = a * b", tensors);
    const std::vector<double> inputs[] = {{1, 2, 3, 4}, {10, 20, 30}};
    const BoundedTensor y = evaluate(p, inputs)[0];
    const double expected[] = {10, 20, 20, 40, 30, 60, 30, 40, 60, 80, 90, 120};
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i].value, expected[i]);
}

TEST(Evaluate, WhatHangsOnRoundingIsUndecided) {
    // exp(0) is 1 give or take its error: whether it exceeds 1 nobody can say. Of the input itself one can.
    EXPECT_EQ(result("y = exp(x) > 1", "x:fp32[1]", {0})[0].error, infinity);
    EXPECT_EQ(result("y = x > 1", "x:fp32[1]", {1})[0].error, 0);
    EXPECT_EQ(result("y = exp(x)", "x:fp32[1]", {89})[0].error, infinity);
}

// -1e60 is beyond fp32, so anything; its exponential is 0 beside that of 1, and 0 times Inf says nothing.
TEST(Evaluate, ARowOfAnUndecidedElementIsUndecided) {
    EXPECT_EQ(result("y = logsumexp(x * abs(x))", "x:fp32[1,3]", {-1e30, 0, 1})[0].error, infinity);
    EXPECT_LT(result("y = logsumexp(x * abs(x))", "x:fp32[1,3]", {-30, 0, 1})[0].error, 1e-3);
}

// 9e38 fits into fp64 alone: in fp32 it is Inf, so that Inf - Inf may stand in every element of its row, those whose share
// of a softmax is 0 included; the row beside it is decided.
TEST(Evaluate, WhatOverflowsFp32AloneLeavesItsRowUndecided) {
    for (const char* text : {"y = softmax(x * abs(x))", "y = log_softmax(x * abs(x))", "y = layernorm(x * abs(x))",
                             "y = rmsnorm(x * abs(x))", "y = x + logsumexp(x * abs(x))", "y = x - mean(x * abs(x))",
                             "y = x + max(x * abs(x))", "y = x + sum(x * abs(x))"}) {
        const BoundedTensor y = result(text, "x:fp32[2,3]", {3e19, 0, 1, 3, 0, 1});
        for (size_t i = 0; i < 3; ++i) EXPECT_EQ(y[i].error, infinity) << text << " at " << i;
        for (size_t i = 3; i < 6; ++i) EXPECT_LT(y[i].error, 1e-3) << text << " at " << i;
    }
    // Inf beside it may be Inf - Inf there.
    for (const char* text : {"y = x + sum(x * abs(x))", "y = x * mean(x * abs(x))", "y = log_softmax(x * abs(x))"}) {
        const BoundedTensor y = result(text, "x:fp32[1,3]", {-3e19, infinity, 1});
        for (size_t i = 0; i < 3; ++i) EXPECT_EQ(y[i].error, infinity) << text << " at " << i;
    }
}

// One result each; Inf and NaN are decided where nothing within the operands' errors gives another.
TEST(Evaluate, InfinitiesOfInexactOperands) {
    const auto y = [](const char* text, double x) { return result(text, "x:fp32[1]", {x})[0]; };
    EXPECT_EQ(y("y = x * exp(x)", infinity).error, 0);
    EXPECT_EQ(y("y = x * (exp(1 / x) + 1)", infinity).error, 0);
    EXPECT_EQ(y("y = x * (exp(1 / x) - 1)", infinity).error, infinity);  // times 0 or what is hardly more
    EXPECT_EQ(y("y = log(exp(x) - 1)", 0).error, infinity);              // -Inf, or a number, or NaN
    EXPECT_EQ(y("y = log(-exp(x))", 0).error, 0);                        // NaN
    EXPECT_EQ(y("y = x + x * x * 1e38", 1e30).error, infinity);
}

TEST(Evaluate, RoundingToATypeAndItsUnits) {
    EXPECT_EQ(rounded_to(1 + 1.0 / 256, Element::bf16), 1);              // half way: to even
    EXPECT_EQ(rounded_to(1 + 3.0 / 256, Element::bf16), 1 + 4.0 / 256);  // to even again
    EXPECT_EQ(rounded_to(65520, Element::fp16), infinity);
    EXPECT_EQ(rounded_to(65519, Element::fp16), 65504);
    EXPECT_EQ(ulp_of(1, Element::bf16), 1.0 / 128);
    EXPECT_EQ(ulp_of(1.5, Element::fp16), 1.0 / 1024);
    EXPECT_EQ(ulp_of(0, Element::fp16), std::ldexp(1.0, -24));
    // Numbers of bf16 lie 2^-7 = 0.0078125 apart behind 1: half way between two of them either is right, and what was cut off
    // there, not rounded, is wrong.
    EXPECT_TRUE(agrees(1, {1.00390625, 0}, Element::bf16));
    EXPECT_TRUE(agrees(1.0078125, {1.00390625, 0}, Element::bf16));
    EXPECT_FALSE(agrees(1, {1.004, 0}, Element::bf16));
    EXPECT_TRUE(agrees(1, {1.004, 0.0001}, Element::bf16));  // it may have been 1.0039
    EXPECT_FALSE(agrees(1.0078125, {1.0, 0}, Element::bf16));
    // Below 2 they lie 2^-7 apart and above it 2^-6: what may have been 2.007 may be 2.
    EXPECT_TRUE(agrees(2, {1.9999, 0.0072}, Element::bf16));
    EXPECT_TRUE(agrees(2.015625, {1.9999, 0.009}, Element::bf16));
    EXPECT_FALSE(agrees(1, {std::nan(""), 0}, Element::bf16));
    EXPECT_FALSE(agrees(3e38, {infinity, 0}, Element::fp32));
}

// By the definition: the exponent that the C library gives, steps of a unit, to the nearest and ties to even.
TEST(Evaluate, UnitsAndRoundingOfEveryMagnitude) {
    struct Type {
        Element element;
        int bits, min_exponent, greatest_exponent;
    };
    for (const Type& t : {Type{Element::bf16, 7, -126, 127}, Type{Element::fp16, 10, -14, 15},
                          Type{Element::fp32, 23, -126, 127}})
        for (int exponent = -1074; exponent < 1024; ++exponent)
            for (const double significand : {1.0, 1.0 + 1.0 / 512, 1.37, 1.5, 1.998, 2 - 1.0 / 4096}) {
                const double x = std::ldexp(significand, exponent);
                if (x == 0 || std::isinf(x)) continue;
                const double unit = std::ldexp(1.0, std::max(std::ilogb(x), t.min_exponent) - t.bits);
                ASSERT_EQ(ulp_of(x, t.element), unit) << x;
                ASSERT_EQ(ulp_of(-x, t.element), unit) << x;
                const double steps = std::nearbyint(x / unit) * unit;
                const double rounded = steps >= std::ldexp(1.0, t.greatest_exponent + 1) ? infinity : steps;
                ASSERT_EQ(rounded_to(x, t.element), rounded) << x;
                ASSERT_EQ(rounded_to(-x, t.element), -rounded) << x;
            }
    EXPECT_EQ(ulp_of(infinity, Element::bf16), std::ldexp(1.0, -133));
    EXPECT_TRUE(std::isnan(rounded_to(std::nan(""), Element::fp16)));
}

// Tensors whose memory others have used, read twice, long after they were made, and as results themselves.
TEST(Evaluate, TensorsLastUntilTheirLastReader) {
    const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:fp32[3]")};
    const ExpressionGraph p =
        expression_graph("a = x * 2; b = a + x; c = b * b; y = c - a; z = b + x", tensors);
    const std::vector<std::vector<double>> inputs = {{1, 2, 3}};
    const auto results = evaluate(p, inputs);
    ASSERT_EQ(results.size(), 2u);
    for (size_t o = 0; o < results.size(); ++o)
        for (size_t i = 0; i < 3; ++i) {
            const double x = inputs[0][i];
            const std::string& name = p.outputs[o].name;
            EXPECT_EQ(results[o][i].value, name == "y" ? 9 * x * x - 2 * x : 4 * x) << name;
        }
}

TEST(Evaluate, DropoutKeepsItsRateAndReplays) {
    int kept = 0;
    for (std::uint64_t i = 0; i < 100000; ++i) kept += dropout_keeps(i, 0.1, 7, 3);
    // Binomial: 90000 with a deviation of 95; five of them.
    EXPECT_NEAR(kept, 90000, 475);
    EXPECT_FALSE(dropout_keeps(5, 1, 7, 3));
    EXPECT_TRUE(dropout_keeps(5, 0, 7, 3));
    // Twos of a word are as independent as others: both dropped in 1 of 100, 500 of 50000 +- 22.
    int both = 0, crossed = 0;
    for (std::uint64_t i = 0; i < 100000; i += 2) {
        both += !dropout_keeps(i, 0.1, 7, 3) && !dropout_keeps(i + 1, 0.1, 7, 3);
        crossed += !dropout_keeps(i, 0.1, 7, 3) && !dropout_keeps(i + 8, 0.1, 7, 3);
    }
    EXPECT_NEAR(both, 500, 110);
    EXPECT_NEAR(crossed, 500, 110);
    int differ = 0;
    for (std::uint64_t i = 0; i < 1000; ++i)
        differ += dropout_keeps(i, 0.5, 7, 3) != dropout_keeps(i, 0.5, 7, 4);
    EXPECT_NEAR(differ, 500, 80);
}

TEST(Evaluate, DropoutTakesHalvesOfAWord) {
    // Elements 2 and 3 share word 1: 3 as it is, 2 with both halves' sum above the lower one.
    const std::uint64_t seed = 11, offset = 5;
    const std::uint32_t word = philox(0, offset, dropout_keys(seed)).word[1];
    const std::uint32_t folded = (word << 16) + word;
    const auto share = [](std::uint32_t draw) { return (double(draw) + 0.5) / 4294967296.0; };
    EXPECT_TRUE(dropout_keeps(3, share(word) - 1e-9, seed, offset));
    EXPECT_FALSE(dropout_keeps(3, share(word) + 1e-9, seed, offset));
    EXPECT_TRUE(dropout_keeps(2, share(folded) - 1e-9, seed, offset));
    EXPECT_FALSE(dropout_keeps(2, share(folded) + 1e-9, seed, offset));
    // The next block begins with element 8.
    const std::uint32_t next = philox(1, offset, dropout_keys(seed)).word[0];
    EXPECT_TRUE(dropout_keeps(9, share(next) - 1e-9, seed, offset));
    EXPECT_FALSE(dropout_keeps(9, share(next) + 1e-9, seed, offset));
}

TEST(Evaluate, ErrorsFollowTheOutputsPrecision) {
    const auto error = [](const std::string& text, const char* type) {
        return result(text, std::string("x:") + type + "[1]", {1})[0].error;
    };
    EXPECT_GT(error("y = tanh(x)", "bf16"), 1e-4);
    EXPECT_LT(error("y = tanh(x)", "fp16"), 1e-5);
    // In a sum it could be all that is left.
    EXPECT_LT(error("y = 1 + tanh(x)", "bf16"), 1e-5);
    EXPECT_LT(error("t = tanh(x); y = (1 - t) * t", "bf16"), 1e-5);
    EXPECT_GT(error("y = -x * tanh(x)", "bf16"), 1e-4);
    EXPECT_GT(error("y = gelu(x)", "bf16"), 1e-4);
    EXPECT_LT(error("y = gelu(x)", "fp16"), 2e-5);
    EXPECT_LT(error("y = gelu(x)", "fp32"), 5e-6);
    // One output that needs more, and all are made with more.
    EXPECT_LT(error("y = gelu(x); z = fp32(x)", "bf16"), 5e-6);
    EXPECT_LT(error("y = gelu(x) > 0.5", "bf16"), 5e-6);
}

/// fp32 arithmetic on the CPU stays within the bounds, and the bounds within a few units of the result.
TEST(Evaluate, BoundsHoldFp32Arithmetic) {
    std::vector<double> x;
    for (int i = 0; i < 4096; ++i) x.push_back(double(float(std::sin(i * 0.7) * 3 + 1000)));
    const BoundedTensor y = result("y = layernorm(x)", "x:fp32[1,4096]", x);
    double mean = 0, squares = 0;
    for (double v : x) mean += v / 4096;
    const float m = float(mean);
    for (double v : x) squares += double((float(v) - m) * (float(v) - m)) / 4096;
    const float scale = 1 / std::sqrt(float(squares) + 1e-5f);
    for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_LE(std::fabs(double((float(x[i]) - m) * scale) - y[i].value), y[i].error) << i;
        EXPECT_LT(y[i].error, 0.01);
    }
}

/// The greatest error of layer norm by such moments in fp32, as a share of what is allowed.
double layernorm_ratio(std::span<const float> row, float mean, float variance) {
    const std::vector<double> x(row.begin(), row.end());
    const BoundedTensor y = result("y = layernorm(x)", "x:fp32[1," + std::to_string(x.size()) + "]", x);
    const float scale = 1 / std::sqrt(variance + 1e-5f);
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i) most = std::max(most, judge(double((row[i] - mean) * scale), y[i], Element::fp32).ratio);
    return most;
}

// PyTorch's moments of rows far from 0 are right; the mean of squares less the square of the mean is not, nor what is left of a row of one
// value by a mean that is an ulp off.
TEST(Evaluate, BoundsOfRowsFarFromZeroHoldWelfordAndNothingNaive) {
    std::mt19937_64 random(5);
    int naive = 0, one_value = 0;
    for (int i = 0; i < 200; ++i) {
        const auto columns = std::size_t(std::exp2(5 + 8 * std::uniform_real_distribution<double>()(random)));
        const std::vector<float> row = shifted_row(random, columns);
        const ExactMoments exact = exact_moments(row);
        const auto n = float(columns);
        if (exact.variance == 0) {
            ++one_value;
            EXPECT_EQ(layernorm_ratio(row, row[0], 0), 0);
            const float off = std::nextafter(row[0], 1e9f);
            EXPECT_GT(layernorm_ratio(row, off, (row[0] - off) * (row[0] - off)), 1) << row[0];
            continue;
        }
        const TorchMoments m = TorchMoments::of(row);
        EXPECT_LE(layernorm_ratio(row, m.mean, m.deviations / n), 1) << columns << " of " << exact.mean;
        const double far = std::fabs(exact.mean) / std::sqrt(exact.variance);
        // Nearer nothing cancels; farther all values are one of a few, or epsilon is more than what they differ by.
        if (far < 1e4 || far > 5e5 || std::fabs(exact.mean) < 1000) continue;
        ++naive;
        float sum = 0, squares = 0;
        for (const float x : row) sum += x, squares += x * x;
        const float mean = sum / n;
        EXPECT_GT(layernorm_ratio(row, mean, std::max(0.0f, squares / n - mean * mean)), 1) << columns << " of " << exact.mean;
    }
    EXPECT_GE(naive, 20);
    EXPECT_GE(one_value, 20);
}

// Of products that are rounded by many units of the exponent, e^x is anything from 0 to 1, and the bounds say so; of small ones they are tight.
TEST(Evaluate, BoundsOfPowersHoldFp32Arithmetic) {
    std::mt19937_64 random(6);
    int far_off = 0, tight = 0;
    for (int i = 0; i < 1000; ++i) {
        const double scale = std::exp2(std::uniform_real_distribution<double>(-2, 17)(random));
        const double spread = i % 2 == 0 ? 2e-7 : 2e-6;
        std::vector<double> x;
        for (int j = 0; j < 64; ++j) x.push_back(double(float(scale * (1 + spread * std::normal_distribution<double>()(random)))));
        std::vector<float> power;
        for (const double v : x) power.push_back(float(v) * float(v));
        const float greatest = *std::max_element(power.begin(), power.end());
        float sum = 0;
        for (const float v : power) sum += std::exp(v - greatest);
        // As fused kernels have it: a product less the greatest in one rounding, huge ones by a smaller scale.
        const float base = std::min(1.44269504f, 536870912.0f / std::fabs(greatest));
        std::vector<float> fused;
        for (const double v : x) fused.push_back(std::exp2(std::fma(float(v), float(v), -greatest) * base));
        const float fused_sum = std::accumulate(fused.begin(), fused.end(), 0.0f);
        const BoundedTensor y = result("y = softmax(x * x)", "x:fp32[1,64]", x), logs = result("y = log_softmax(x * x)", "x:fp32[1,64]", x);
        for (std::size_t j = 0; j < x.size(); ++j) {
            const double got = double(std::exp(power[j] - greatest) / sum);
            EXPECT_LE(judge(got, y[j], Element::fp32).ratio, 1) << scale << ": " << got << " for " << y[j].value << " within " << y[j].error;
            EXPECT_LE(judge(double(fused[j] / fused_sum), y[j], Element::fp32).ratio, 1) << scale << ", fused";
            EXPECT_LE(judge(double(power[j] - greatest - std::log(sum)), logs[j], Element::fp32).ratio, 1) << scale;
            EXPECT_LE(y[j].error, 1.001);
            far_off += std::fabs(got - y[j].value) > 0.01;
            if (scale > 1) continue;
            ++tight;
            EXPECT_LT(y[j].error, 2e-4 * y[j].value);
        }
    }
    EXPECT_GT(far_off, 50);
    EXPECT_GT(tight, 500);
}

}  // namespace
}  // namespace rooftile
