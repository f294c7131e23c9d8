// The bounds of random sums, held against simulated tensor cores: what is right never fails, what is wrong always does.
#include "kernels/measure/arguments.hpp"
#include "kernels/measure/numbers.hpp"
#include "tests/from_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {
namespace {

/// `x` cut or rounded to `fraction` bits; subnormal below 2^min_exponent.
enum class Cut { nearest, towards_zero };
double shortened(double x, int fraction, int min_exponent, Cut cut = Cut::nearest) {
    if (x == 0) return 0;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(x), min_exponent) - fraction);
    return (cut == Cut::nearest ? std::nearbyint(x / unit) : std::trunc(x / unit)) * unit;
}

/// Both operands of a tile of C and its fp64 reference.
struct Tile {
    int m, n, k;
    Type type;
    std::vector<double> a, b;        ///< k by m, k by n
    std::vector<double> sum, sigma;  ///< m by n

    Tile(int m, int n, int k, Type type, std::mt19937_64& random)
        : m(m),
          n(n),
          k(k),
          type(type),
          a(numbers(m, random)),
          b(numbers(n, random)),
          sum(product(a, b, 0, k)) {
        const auto squared = [](std::vector<double> x) {
            for (double& v : x) v *= v;
            return x;
        };
        sigma = product(squared(a), squared(b), 0, k);
        for (double& s : sigma) s = std::sqrt(s);
    }

    std::vector<double> product(const std::vector<double>& x, const std::vector<double>& y, int from,
                                int to) const {
        std::vector<double> c(static_cast<std::size_t>(m * n));
        for (int i = 0; i < m; ++i) {
            double* row = &c[static_cast<std::size_t>(i * n)];
            for (int l = from; l < to; ++l) {
                const double xi = x[static_cast<std::size_t>(l * m + i)];
                const double* yl = &y[static_cast<std::size_t>(l * n)];
                for (int j = 0; j < n; ++j) row[j] += xi * yl[j];
            }
        }
        return c;
    }

    std::vector<unsigned> rounded(const std::vector<double>& c) const {
        std::vector<unsigned> bits;
        for (const double x : c) bits.push_back(round_to_bits(x, type));
        return bits;
    }

  private:
    std::vector<double> numbers(int lines, std::mt19937_64& random) const {
        std::normal_distribution<double> normal;
        std::vector<double> x(static_cast<std::size_t>(lines) * static_cast<std::size_t>(k));
        for (double& v : x) v = value_of_bits(round_to_bits(normal(random), type), type);
        return x;
    }
};

/// A tensor core: blocks of `block` products and the running sum, each cut towards zero to a unit of the largest,
/// `guard` bits below fp32's last, then the sum cut to fp32.
std::vector<double> tensor_core(const Tile& t, int block, int guard = 0) {
    std::vector<double> c(t.sum.size());
    const auto exponent = [](double x) {
        return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
    };
    for (int i = 0; i < t.m; ++i) {
        for (int l = 0; l < t.k; l += block) {
            const int count = std::min(block, t.k - l);
            for (int j = 0; j < t.n; ++j) {
                double& s = c[static_cast<std::size_t>(i * t.n + j)];
                std::array<double, 16> p{};
                double largest = std::abs(s);
                for (int q = 0; q < count; ++q) {
                    p[static_cast<std::size_t>(q)] = t.a[static_cast<std::size_t>((l + q) * t.m + i)]
                                                     * t.b[static_cast<std::size_t>((l + q) * t.n + j)];
                    largest = std::max(largest, std::abs(p[static_cast<std::size_t>(q)]));
                }
                if (largest == 0) continue;
                const int unit = exponent(largest) - 23 - guard;
                auto units = static_cast<std::int64_t>(s * power_of_two(-unit));
                for (int q = 0; q < count; ++q)
                    units += static_cast<std::int64_t>(p[static_cast<std::size_t>(q)] * power_of_two(-unit));
                s = static_cast<double>(units) * power_of_two(unit);
                if (s == 0) continue;
                const int last = exponent(s) - 23;
                s = static_cast<double>(static_cast<std::int64_t>(s * power_of_two(-last)))
                    * power_of_two(last);
            }
        }
    }
    return c;
}

/// One multiply-add after the other in fp32, in `parts` sums that are added last.
std::vector<double> fp32_units(const Tile& t, int parts) {
    std::vector<double> c;
    for (int i = 0; i < t.m; ++i) {
        for (int j = 0; j < t.n; ++j) {
            float all = 0;
            for (int part = 0; part < parts; ++part) {
                float s = 0;
                for (int l = t.k * part / parts; l < t.k * (part + 1) / parts; ++l) {
                    s = std::fma(static_cast<float>(t.a[static_cast<std::size_t>(l * t.m + i)]),
                                 static_cast<float>(t.b[static_cast<std::size_t>(l * t.n + j)]), s);
                }
                all += s;
            }
            c.push_back(all);
        }
    }
    return c;
}

struct TileVerdict {
    double element = 0;  ///< largest ratio
    double tile = 0;     ///< root of squared errors over allowed ones
    double errors = 0, allowed = 0;
    bool right() const { return element <= 1 && tile <= 1; }
};

/// As verify.cuh judges a tile.
TileVerdict judged(const Tile& t, const std::vector<unsigned>& got) {
    const ErrorModel model = error_model(t.k);
    TileVerdict v;
    ExpectedErrors expected{};
    for (std::size_t e = 0; e < got.size(); ++e) {
        const Verdict one = judge_bounded(got[e], t.sum[e], t.sigma[e], model, t.type);
        v.element = std::max(v.element, one.ratio);
        const ExpectedErrors adds = expected_error(t.sum[e], t.sigma[e], model, t.type);
        add(expected, adds);
        if (adds.elements > 0) v.errors += one.error * one.error / (t.sigma[e] * t.sigma[e]);
    }
    v.allowed = allowed_errors(expected, model);
    v.tile = v.errors > 0 ? std::sqrt(v.errors / v.allowed) : 0;
    return v;
}

constexpr int depths[] = {512, 4096, 16384, 28672};
constexpr Type types[] = {Type::bf16, Type::fp16};

std::string_view name(Type type) { return type == Type::bf16 ? "bf16" : "fp16"; }

TEST(RandomSums, RightOnesPassAtEveryDepth) {
    std::mt19937_64 random(1);
    for (const Type type : types) {
        for (const int k : drawn_few(std::vector(std::begin(depths), std::end(depths)), 1)) {
            const Tile t(32, 32, k, type, random);
            const auto passes = [&](const std::vector<double>& c, std::string_view what) {
                const TileVerdict v = judged(t, t.rounded(c));
                EXPECT_LT(v.element, 1) << name(type) << ", K " << k << ", " << what;
                EXPECT_LT(v.tile, 1) << name(type) << ", K " << k << ", " << what;
            };
            passes(t.sum, "fp64");
            passes(tensor_core(t, 4), "blocks of 4");
            passes(tensor_core(t, 16, 2), "blocks of 16");
            passes(fp32_units(t, 1), "fp32");
            passes(fp32_units(t, 4), "fp32 in four parts");
        }
    }
}

TEST(RandomSums, WrongOnesFailAtEveryDepth) {
    std::mt19937_64 random(2);
    for (const Type type : types) {
        for (const int k : drawn_few(std::vector(std::begin(depths), std::end(depths)), 1)) {
            const Tile t(verify_tile, verify_tile, k, type, random);
            const auto fails = [&](const std::vector<unsigned>& got, std::string_view what) {
                const TileVerdict v = judged(t, got);
                EXPECT_FALSE(v.right()) << name(type) << ", K " << k << ", " << what << ": element "
                                        << v.element << ", tile " << v.tile;
                return v;
            };
            const auto changed = [&](const std::function<double(double)>& change) {
                std::vector<double> x = t.a, y = t.b;
                for (double& v : x) v = change(v);
                for (double& v : y) v = change(v);
                return t.rounded(t.product(x, y, 0, k));
            };
            for (const int step : {64, 16}) {
                std::vector<double> c = t.sum;
                const std::vector<double> dropped = t.product(t.a, t.b, k / 2, k / 2 + step);
                for (std::size_t e = 0; e < c.size(); ++e) c[e] -= dropped[e];
                fails(t.rounded(c), "a dropped step of " + std::to_string(step));
            }
            fails(changed([](double x) { return shortened(x, 3, -6); }), "operands in fp8 e4m3");
            fails(changed([](double x) { return shortened(x, 2, -14); }), "operands in fp8 e5m2");
            const FloatFormat f = float_format(type);
            fails(changed([&](double x) { return shortened(x, f.fraction_bits - 1, f.min_exponent()); }),
                  "operands of a bit less");
            // A sum that is kept in bf16 from step to step, and two halves added in bf16.
            for (const int step : {64, k / 2}) {
                std::vector<double> c(t.sum.size());
                for (int l = 0; l < k; l += step) {
                    const std::vector<double> part = t.product(t.a, t.b, l, l + step);
                    for (std::size_t e = 0; e < c.size(); ++e)
                        c[e] = shortened(c[e] + shortened(part[e], 7, -126), 7, -126);
                }
                fails(t.rounded(c), "sums in bf16, steps of " + std::to_string(step));
            }
            std::vector<unsigned> cut;
            for (const double x : tensor_core(t, 16, 2))
                cut.push_back(
                    round_to_bits(shortened(x, f.fraction_bits, f.min_exponent(), Cut::towards_zero), type));
            const TileVerdict v = fails(cut, "cut instead of rounded");
            EXPECT_GT(v.tile, 1) << "single elements need not tell, the tile must";
            // The further neighbour wherever an element's bound allows it: no element tells.
            std::vector<double> c = t.sum;
            for (std::size_t e = 0; e < c.size(); ++e) {
                const double x = c[e], near = value_of_bits(round_to_bits(x, type), type);
                const double far = near + std::copysign(unit_in_last_place(x, type), x - near);
                const double bound = error_bound(x, t.sigma[e], error_model(k), type);
                c[e] = std::abs(far - x) < 0.95 * bound ? far : near;
            }
            EXPECT_LT(fails(t.rounded(c), "further neighbours").element, 1);
        }
    }
}

// 10^5 tiles of 8 x 8, as small as the edges of C: the limits of few elements.
TEST(RandomSums, NoFalseAlarmInAHundredThousandTiles) {
    std::mt19937_64 random(3);
    double element = 0, tile = 0;
    const int tiles = test_all() ? 100'000 : 20'000;
    for (int i = 0; i < tiles; ++i) {
        const Tile t(8, 8, 1 + i % 48, types[i % 2], random);
        const TileVerdict v = judged(t, t.rounded(tensor_core(t, 4)));
        element = std::max(element, v.element), tile = std::max(tile, v.tile);
    }
    EXPECT_LT(element, 1);
    EXPECT_LT(tile, 1);
}

// Of whole tiles fewer can be made; their sums of 4096 squares are near to normal, and the limit must lie beyond what
// a normal distribution reaches once in 10^9 (6 deviations).
TEST(RandomSums, TheLimitOfATileLiesFarOutside) {
    std::mt19937_64 random(4);
    for (const Type type : types) {
        for (const int k : {1, 2, 8, 64}) {
            double sum = 0, squares = 0, largest = 0;
            const int tiles = test_all() ? 250 : 60;
            for (int i = 0; i < tiles; ++i) {
                const Tile t(verify_tile, verify_tile, k, type, random);
                const TileVerdict v = judged(t, t.rounded(tensor_core(t, 4)));
                const double share = v.errors / v.allowed;
                sum += share, squares += share * share, largest = std::max(largest, share);
            }
            const double mean = sum / tiles, deviation = std::sqrt(squares / tiles - mean * mean);
            EXPECT_GT((1 - mean) / deviation, 6) << name(type) << ", K " << k << ", mean " << mean;
            EXPECT_LT(largest, 1);
        }
    }
}

}  // namespace
}  // namespace rooftile
