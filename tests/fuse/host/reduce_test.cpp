// The text of kernels/fuse/reduce.cuh that adds up softmax's powers, run on the CPU against fp64: any reference, any
// way to merge, and what IEEE has at its edges. tests/fake/device stands in for the instructions.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/expression.hpp"

#include "tests/fuse/host/lanes.hpp"
#include "tests/fuse/shifted_rows.hpp"

#include "kernels/fuse/reduce.cuh"

namespace rooftile {
namespace {

using fuse::PowerBase, fuse::Powers, fuse::RunningPowers;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double max_bf16 = 3.3895313892515355e38, max_fp16 = 65504;
constexpr int vector_width = 8;

constexpr Element element_of(expression::bf16) { return Element::bf16; }
constexpr Element element_of(expression::fp16) { return Element::fp16; }

template <class T>
T narrowed(double x) {
    static const std::map<double, unsigned> numbers = [] {
        std::map<double, unsigned> out;
        for (unsigned bits = 0; bits < 0x10000; ++bits)
            if (const double y = double(ptx::widen<T::type>(bits)); !std::isnan(y)) out[y] = bits;
        return out;
    }();
    return {static_cast<unsigned short>(std::isnan(x) ? 0x7fff : numbers.at(rounded_to(x, element_of(T{}))))};
}

/// The row's softmax as kernels compute it: `threads` go over every so many vectors, then merge in pairs.
template <class T>
std::vector<double> softmax_of(const std::vector<T>& row, size_t threads) {
    std::vector<Powers> parts;
    for (size_t thread = 0; thread < threads; ++thread) {
        RunningPowers run;
        for (size_t first = thread * vector_width; first < row.size(); first += threads * vector_width) {
            fuse::Pack<T, vector_width> pack;
            for (size_t k = 0; k < vector_width; ++k) pack.element[k] = row[first + k];
            run.reach(fuse::greatest_of(pack));
            run.add(pack);
        }
        parts.push_back(run.powers());
    }
    for (size_t half = threads / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i) parts[i].merge(parts[i + half]);
    const PowerBase base(parts[0].reference);
    const float inverse = expression::divide(1.0f, parts[0].total);
    std::vector<double> out;
    for (T x : row) out.push_back(double(base.power(ptx::widen<T::type>(x.bits)) * inverse));
    return out;
}

/// As where a row is held: the greatest value first.
template <class T>
std::vector<double> softmax_in_two(const std::vector<T>& row) {
    fuse::Max top;
    float total = 0;
    for (size_t first = 0; first < row.size(); first += vector_width) {
        fuse::Pack<T, vector_width> pack;
        for (size_t k = 0; k < vector_width; ++k) pack.element[k] = row[first + k];
        top.add(pack);
    }
    const PowerBase base(top.greatest);
    for (T x : row) total += base.power(ptx::widen<T::type>(x.bits));
    std::vector<double> out;
    for (T x : row)
        out.push_back(double(base.power(ptx::widen<T::type>(x.bits)) * expression::divide(1.0f, total)));
    return out;
}

void expect_bounded(const std::vector<double>& got, const BoundedTensor& expected, const std::string& what) {
    for (size_t i = 0; i < got.size(); ++i) {
        const Bounded& e = expected[i];
        const bool right = std::isnan(e.value) ? std::isnan(got[i]) : std::fabs(got[i] - e.value) <= e.error;
        ASSERT_TRUE(right) << what << ", element " << i << ": got " << got[i] << ", expected " << e.value
                           << " within " << e.error;
    }
}

/// By one thread and more, to twice as many as there are vectors.
template <class T>
void expect_softmax(std::vector<double> values, const std::string& what) {
    std::vector<T> row;
    for (double& x : values) {
        row.push_back(narrowed<T>(x));
        x = double(ptx::widen<T::type>(row.back().bits));
    }
    const std::vector<TensorDeclaration> tensors = {tensor_declaration(
        fmt::format("x:{}[1,{}]", element_of(T{}) == Element::bf16 ? "bf16" : "fp16", values.size()))};
    const std::vector<double> inputs[] = {values};
    const BoundedTensor expected = evaluate(expression_graph("y = softmax(x)", tensors), inputs)[0];
    for (double direction : {-1.0, 0.0, 1.0}) {
        ptx::special_error = direction;
        for (size_t threads = 1; threads <= 2 * values.size() / vector_width; threads *= 2)
            expect_bounded(softmax_of(row, threads), expected,
                           fmt::format("{} of {} threads", what, threads));
        expect_bounded(softmax_in_two(row), expected, what + " in two");
    }
    ptx::special_error = 0;
}

/// `count` values around `middle`.
std::vector<double> around(double middle, double spread, size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 1);
    std::vector<double> out;
    for (size_t i = 0; i < count; ++i) out.push_back(middle + spread * normal(random));
    return out;
}

TEST(FusePowers, KeepTheErrorTheyState) {
    constexpr double log2_e = 1.4426950408889634, unit = 1.0 / 4194304;
    for (double reference : {0.0, 1.0, -3.5, 88.0, 1000.0, -65504.0, 1048576.0, -1044480.0})
        for (double distance : {16.0, 1.0, 0.0, -0.125, -1.0, -10.0, -30.0, -85.0}) {
            const double v = rounded_to(reference + distance, Element::bf16);
            const PowerBase base{float(reference)};
            const double factor = double(expression::log2_e) * reference + double(base.offset);
            EXPECT_LE(std::fabs(factor), 0.07) << reference;
            const double exact = std::exp2(log2_e * (v - reference) + factor);
            for (double direction : {-1.0, 1.0}) {
                ptx::special_error = direction;
                EXPECT_NEAR(double(base.power(float(v))), exact,
                            exact * (2 + std::fabs(v - reference)) * unit)
                    << v << " from " << reference;
            }
        }
    ptx::special_error = 0;
}

TEST(FusePowers, SoftmaxOfAnyReference) {
    for (double middle : {0.0, 1.0, -100.0, 3000.0, -60000.0, 60000.0})
        for (double spread : {0.01, 1.0, 5.0, 100.0}) {
            const std::string what = fmt::format("{} +- {}", middle, spread);
            expect_softmax<expression::bf16>(around(middle, spread, 256, 7), what);
            expect_softmax<expression::fp16>(around(middle, spread, 256, 8), what);
        }
    for (double middle : {1e5, 1e6, -1e6, 1048576.0, -1048576.0, 1e7, -1e9, 1e30, -1e30, 3e38, -3e38})
        for (double spread : {1.0, 1e-3 * std::fabs(middle), 0.1 * std::fabs(middle)})
            expect_softmax<expression::bf16>(around(middle, spread, 256, 9),
                                             fmt::format("{} +- {}", middle, spread));
}

// Rising, so that every vector moves the reference; falling; both signs, over all of the type.
TEST(FusePowers, SoftmaxOfMixedScales) {
    std::vector<double> rising, both;
    for (int i = 0; i < 256; ++i) {
        rising.push_back(i % 4 == 0 ? -std::exp2(127 - i / 2.0) : -0.5 * (255 - i));
        both.push_back((i % 3 ? 1 : -1) * std::exp2(i % 5 ? 20.0 + i % 7 - 3 : i / 2.0));
    }
    expect_softmax<expression::bf16>(rising, "rising");
    expect_softmax<expression::bf16>(std::vector<double>(rising.rbegin(), rising.rend()), "falling");
    expect_softmax<expression::bf16>(both, "both signs");
    // The last value of one scale and the first of the other, far from the rest and alone.
    for (double edge : {1048576.0, 1056768.0, -1048576.0, -1056768.0, max_bf16, -max_bf16})
        for (double rest : {0.0, 1048576.0, -1048576.0, -1056768.0, -max_bf16, -infinity})
            for (size_t at : {size_t(0), size_t(63)}) {
                std::vector<double> row(64, rest);
                row[at] = edge;
                expect_softmax<expression::bf16>(row, fmt::format("{} among {}", edge, rest));
            }
    for (double rest : {0.0, 65472.0, -max_fp16, -infinity}) {
        std::vector<double> row(64, rest);
        row[20] = max_fp16;
        expect_softmax<expression::fp16>(row, fmt::format("{} among {}", max_fp16, rest));
    }
}

TEST(FusePowers, SoftmaxOfInfinitiesAndNothing) {
    const double nan = std::nan("");
    for (double edge : {infinity, -infinity, nan})
        for (double rest : {0.0, -5.0, 1e30, -1e30, max_bf16, -max_bf16, -infinity, infinity})
            for (size_t at : {size_t(0), size_t(9), size_t(127)}) {
                std::vector<double> row(128, rest);
                row[at] = edge;
                expect_softmax<expression::bf16>(row, fmt::format("{} among {}", edge, rest));
                if (std::fabs(rest) == infinity || std::fabs(rest) < 10)
                    expect_softmax<expression::fp16>(row, fmt::format("{} among {} of fp16", edge, rest));
            }
}

// Sums around 0 are right to a part in 10^5 or say that they are not, whatever the mean and the size.
TEST(FuseMoments, PlainOnesAreRightOrCancelled) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    int right = 0, cancelled = 0;
    for (const double size : {1.0, 1e-10, 1e10, 1e17, 1e19, 1e30})
        for (const double mean : {0.0, 0.5, 2.0, 3.9, 4.1, 10.0, 100.0, 1000.0}) {
            fuse::PlainMoments run;
            constexpr int vectors = 32;
            double sum = 0, squares = 0;
            std::vector<double> values;
            for (int v = 0; v < vectors; ++v) {
                float x[vector_width];
                for (float& value : x) {
                    value = float(size * (mean + normal(random)));
                    values.push_back(value);
                    sum += value;
                }
                run.add(x, 0);
            }
            for (const double x : values) squares += std::pow(x - sum / double(values.size()), 2);
            const fuse::Moments m = run.moments(vectors * vector_width);
            if (m.cancelled()) {
                ++cancelled;
                EXPECT_TRUE(mean > 3.5 || size > 1e16) << mean << " times " << size;
            } else {
                ++right;
                EXPECT_NEAR(m.deviations / squares, 1, 1e-5) << mean << " times " << size;
            }
        }
    EXPECT_GE(right, 12);
    EXPECT_GE(cancelled, 12);
    for (const float odd : {float(infinity), float(-infinity), std::nanf("")}) {
        fuse::PlainMoments run;
        const float x[4] = {1, 2, odd, 3};
        run.add(x, 0);
        EXPECT_TRUE(run.moments(4).cancelled());
    }
}

/// A row's accumulator as kernels add it up: `threads` go over every so many vectors, then merge in halves. What a row ends within is filled with
/// what adds nothing.
template <class A>
A added_up(std::span<const float> row, std::size_t threads) {
    std::vector<A> parts(threads);
    for (std::size_t first = 0; first < row.size(); first += vector_width) {
        float v[vector_width];
        for (std::size_t k = 0; k < vector_width; ++k) v[k] = first + k < row.size() ? row[first + k] : 0;
        parts[first / vector_width % threads].add(v, 0);
    }
    for (std::size_t half = threads / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) parts[i].merge(parts[i + half]);
    return parts[0];
}

constexpr std::size_t drawn_threads[] = {1, 8, 32, 256, 1024};

// A mean that is subtracted again: half a unit in the last place, and of a row of one value none.
TEST(FuseMeans, AreRoundedOnce) {
    std::mt19937_64 random(11);
    for (int i = 0; i < 600; ++i) {
        const auto columns = std::size_t(std::exp2(1 + 14 * std::uniform_real_distribution<double>()(random)));
        const std::vector<float> row = shifted_row(random, columns);
        const ExactMoments exact = exact_moments(row);
        const auto n = double(columns);
        const fuse::SumAndRest sum = added_up<fuse::SumAndRest>(row, drawn_threads[random() % 5]);
        const float mean = fuse::mean_of(sum, float(n), float(n - double(float(n))), float(1 / n));
        EXPECT_LE(std::fabs(double(mean) - exact.mean), 0.51 * fp32_ulp(exact.mean)) << columns << " of " << exact.mean;
        if (exact.variance == 0) { EXPECT_EQ(mean, row[0]); }
    }
    for (const float odd : {float(infinity), float(-infinity), std::nanf("")}) {
        std::vector<float> row(100, 1.0f);
        row[37] = odd;
        const float mean = fuse::mean_of(added_up<fuse::SumAndRest>(row, 8), 100, 0, 0.01f);
        EXPECT_TRUE(std::isnan(odd) ? std::isnan(mean) : mean == odd) << odd;
    }
}

// Layer norm of rows that are held, whose second round has the differences from what the first gave; and of rows that are read once, around
// a thread's first value.
TEST(FuseMoments, NormsRowsFarFromZeroAsPyTorch) {
    constexpr double epsilon = 1e-5;
    std::mt19937_64 random(12);
    for (int i = 0; i < 600; ++i) {
        const auto columns = std::size_t(std::exp2(1 + 14 * std::uniform_real_distribution<double>()(random)));
        const std::vector<float> row = shifted_row(random, columns);
        const ExactMoments exact = exact_moments(row);
        std::size_t threads = 8;  // each holds 64 elements at most
        while (64 * threads < columns) threads *= 2;
        const float sum = added_up<fuse::Sum>(row, threads).total, near = sum * ptx::reciprocal_approx(float(columns));
        std::vector<float> differences;
        for (const float x : row) differences.push_back(x - near);
        const auto apart = added_up<fuse::Differences>(differences, threads);
        fuse::RunningMoments run;
        for (const float x : row) {
            const float one[1] = {x};
            run.add(one, 0);
        }
        const double allowed = 2 * torch_layernorm_error(row, epsilon);
        const fuse::Moments all[] = {apart.moments(float(columns), near), run.moments(float(columns))};
        for (int form = 0; form < (columns <= 256 ? 2 : 1); ++form) {  // planners keep to it: RowsText::few_elements()
            const fuse::Moments& m = all[form];
            const float scale = expression::inverse_root(m.deviations * float(1 / double(columns)) + float(epsilon));
            for (const float x : row) {
                const double y = (double(x) - exact.mean) / std::sqrt(exact.variance + epsilon);
                const double got = double((x - m.mean) * scale);
                ASSERT_LE(std::fabs(got - y), allowed + fp32_ulp(y) + 4 * 6e-8 * std::fabs(y))
                    << "form " << form << ", " << columns << " of " << exact.mean << " +- " << std::sqrt(exact.variance);
            }
        }
    }
}

// The reference follows the greatest, and what is summed so far with it; an iteration has several vectors.
TEST(FusePowers, TheReferenceIsTheGreatest) {
    RunningPowers run;
    const auto add = [&](double x) {
        fuse::Pack<expression::bf16, 1> one;
        one.element[0] = narrowed<expression::bf16>(x);
        run.reach(float(x));
        run.add(one);
        run.add(one);
    };
    add(1);
    add(-3);
    EXPECT_EQ(run.reference, 1.0f);
    EXPECT_NEAR(double(run.total), 2 + 2 * std::exp(-4), 1e-5);
    add(17.125);
    EXPECT_EQ(run.reference, 17.125f);
    EXPECT_NEAR(double(run.total), 2 + 2 * std::exp(-16.125), 1e-5);
    add(infinity);
    EXPECT_TRUE(std::isnan(run.total));
}

// Of rows whose greatest is near fp32's end, as of any other: the greatest is 1, what lies far below it 0.
TEST(FusePowers, OfDifferencesHoldForAnyGreatest) {
    for (const double greatest : {1e-40, 0.0, 1.0, 1e8, 1e20, 8.5e37, 1.7e38, max_bf16, -max_bf16}) {
        SCOPED_TRACE(greatest);
        const fuse::DifferencePowers powers{float(greatest)};
        EXPECT_EQ(powers.power(0), 1.0f);
        EXPECT_EQ(powers.power(float(-std::max(1000.0, std::abs(greatest) / 2))), 0.0f);
    }
    EXPECT_NEAR(fuse::DifferencePowers(1e8f).power(-2), std::exp(-2.0), 1e-6);
}

}  // namespace
}  // namespace rooftile
