// The error that a plan says of rounded weights is that of rounding them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "kernels/gemm/weight_values.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/gemm/quantised_error.hpp"

namespace rooftile {
namespace {

constexpr int rounded_count = 200000;

std::vector<double> normal_numbers() {
    Random random(5);
    std::vector<double> out(rounded_count);
    for (double& x : out) x = std::sqrt(-2 * std::log(random.uniform(1e-300, 1))) * std::cos(2 * std::numbers::pi * random.uniform(0, 1));
    return out;
}

/// In groups, each rounded to steps + 1 numbers: mean squared error.
double rounded(std::span<const double> numbers, int steps, int group, bool of_range) {
    double sum = 0;
    const int groups = rounded_count / group;
    for (int g = 0; g < groups; ++g) {
        const auto w = numbers.subspan(std::size_t(g * group), std::size_t(group));
        const auto [least, greatest] = std::ranges::minmax(w);
        const double most = std::max(-least, greatest), scale = (of_range ? greatest - least : 2 * most) / steps;
        const double from = of_range ? least : 0;
        for (const double x : w) sum += std::pow(from + scale * std::round((x - from) / scale) - x, 2);
    }
    return sum / (double(groups) * group);
}

// 200,000 numbers give their mean square to less than 1 %.
TEST(RoundingError, IsThatOfRoundedNormalNumbers) {
    const std::vector<double> numbers = normal_numbers();
    for (const int group : {32, 64, 128, 4096})
        for (const bool of_range : {false, true})
            for (const int steps : {14, 15, 254}) {
                if (!of_range && steps == 15) continue;  // 0 is one of them
                const double drawn = rounded(numbers, steps, group, of_range);
                EXPECT_NEAR(rounding_error(steps, group, of_range), drawn, 0.04 * drawn) << group << ' ' << of_range << ' ' << steps;
            }
}

/// In groups, each rounded to the nearest of the numbers that its scale gives; `powers`: the scale is 2^(floor(log2(largest)) - 2).
double coded(std::span<const double> numbers, std::span<const double> codes, int group, bool powers) {
    const double most = std::ranges::max(codes);
    double sum = 0;
    const int groups = rounded_count / group;
    for (int g = 0; g < groups; ++g) {
        const auto w = numbers.subspan(std::size_t(g * group), std::size_t(group));
        double largest = 0;
        for (const double x : w) largest = std::max(largest, std::abs(x));
        const double scale = powers ? std::exp2(std::floor(std::log2(largest)) - 2) : largest / most;
        for (const double x : w) {
            double error = INFINITY;
            for (const double code : codes) error = std::min(error, std::abs(code * scale - x));
            sum += error * error;
        }
    }
    return sum / (double(groups) * group);
}

TEST(RoundingError, IsThatOfCodes) {
    const std::vector<double> numbers = normal_numbers();
    for (const WeightType weights : {WeightType::fp8_e4m3, WeightType::fp8_e5m2, WeightType::mxfp4, WeightType::nf4}) {
        QuantisedLayout layout{.weights = weights, .group = weights == WeightType::mxfp4 ? 32 : 64};
        std::vector<double> codes;
        for (unsigned bits = 0; bits <= layout.mask(); ++bits)
            if (const double x = layout.is_table() ? table_number(weights, bits) : weight_value(layout, bits, Type::bf16); std::isfinite(x)) codes.push_back(x);
        const double drawn = coded(numbers, codes, layout.group, layout.power_scales());
        EXPECT_NEAR(rounding_error(layout, 4096), drawn, 0.04 * drawn) << int(weights);
    }
}

TEST(RoundingError, IsLessWithMoreBitsAndShorterGroups) {
    GemmProblem p = gemm_problem(1, 256, 4096);
    p.quantised.weights = WeightType::int4;
    const auto [eight, coarse, fine] = weights_held(p);
    EXPECT_LT(eight.error * 100, fine.error);
    EXPECT_LT(fine.error, coarse.error);
    EXPECT_GT(eight.bytes, fine.bytes);
    EXPECT_GT(fine.bytes, coarse.bytes);
    EXPECT_EQ(coarse.bytes, double(p.quantised.bytes(p.n, p.k)));
    EXPECT_EQ(coarse.error, rounding_error(p.quantised, p.k));
    QuantisedLayout row = p.quantised;
    row.group = 0;
    EXPECT_GT(rounding_error(row, p.k), coarse.error);
    // Of one weight that is its group nothing is lost.
    EXPECT_EQ(rounding_error(14, 1, false), 0);
}

}  // namespace
}  // namespace rooftile
