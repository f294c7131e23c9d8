// The arithmetic of verification, the same lines on the host (tests) and on the device (verify.cuh):
// exact conversion of narrow types and fp32, rounding to nearest even, the bound of an element's error and of a tile's.
// No includes.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// What makes a floating-point type: 1 sign bit, `fraction_bits`, and an exponent in the rest of `bits`.
struct FloatFormat {
    int fraction_bits;
    int bias;
    int bits = 16;
    bool has_infinity = true;  ///< else the largest exponent is of numbers, but for a NaN of all ones

    constexpr unsigned sign_bit() const { return 1u << (bits - 1); }
    constexpr unsigned magnitude_bits() const { return sign_bit() - 1u; }
    /// The least magnitude that is no number: that of Inf where there is one.
    constexpr unsigned infinity() const {
        return has_infinity ? magnitude_bits() & ~((1u << fraction_bits) - 1u) : magnitude_bits();
    }
    constexpr int min_exponent() const { return 1 - bias; }  ///< of a normal number
    constexpr int max_exponent() const { return has_infinity ? bias : bias + 1; }
};

/// IEEE binary16 and binary32; bfloat16, the upper half of the latter; OCP's 8-bit e4m3 and e5m2.
constexpr FloatFormat float_format(Type type) {
    return type == Type::bf16       ? FloatFormat{7, 127}
           : type == Type::fp16     ? FloatFormat{10, 15}
           : type == Type::fp32     ? FloatFormat{23, 127, 32}
           : type == Type::fp8_e5m2 ? FloatFormat{2, 15, 8}
                                    : FloatFormat{3, 7, 8, false};
}

/// 2^e for e within the normal range of a double.
constexpr double power_of_two(int e) {
    return __builtin_bit_cast(double, static_cast<unsigned long long>(e + 1023) << 52);
}

enum class NumberClass : int { finite, infinite, negative_infinite, nan };

constexpr NumberClass class_of_bits(unsigned bits, Type type) {
    const FloatFormat f = float_format(type);
    const unsigned magnitude = bits & f.magnitude_bits();
    if (magnitude > f.infinity() || (magnitude == f.infinity() && !f.has_infinity)) return NumberClass::nan;
    if (magnitude < f.infinity()) return NumberClass::finite;
    return (bits & f.sign_bit()) ? NumberClass::negative_infinite : NumberClass::infinite;
}

constexpr NumberClass class_of(double x) {
    const auto bits = __builtin_bit_cast(unsigned long long, x);
    const auto magnitude = bits & 0x7fffffffffffffffull;
    if (magnitude > 0x7ff0000000000000ull) return NumberClass::nan;
    if (magnitude < 0x7ff0000000000000ull) return NumberClass::finite;
    return (bits >> 63) ? NumberClass::negative_infinite : NumberClass::infinite;
}

/// The value of bits of `type`; exact, since a double has more of everything.
constexpr double value_of_bits(unsigned bits, Type type) {
    const FloatFormat f = float_format(type);
    const unsigned magnitude = bits & f.magnitude_bits();
    const auto sign = static_cast<unsigned long long>((bits & f.sign_bit()) != 0) << 63;
    if (magnitude >= f.infinity() && !f.has_infinity) return __builtin_bit_cast(double, sign | 0x7ff8000000000000ull);
    if (magnitude >= f.infinity()) {  // Inf and NaN: every exponent bit set, fraction moved up
        const auto fraction = static_cast<unsigned long long>(magnitude & ~f.infinity());
        return __builtin_bit_cast(double,
                                  sign | 0x7ff0000000000000ull | (fraction << (52 - f.fraction_bits)));
    }
    const int exponent = static_cast<int>(magnitude >> f.fraction_bits);
    if (exponent == 0) {
        const double subnormal = magnitude * power_of_two(f.min_exponent() - f.fraction_bits);
        return (sign >> 63) ? -subnormal : subnormal;
    }
    const auto fraction = static_cast<unsigned long long>(magnitude & ((1u << f.fraction_bits) - 1u));
    const auto wide = static_cast<unsigned long long>(exponent - f.bias + 1023) << 52;
    return __builtin_bit_cast(double, sign | wide | (fraction << (52 - f.fraction_bits)));
}

/// The bits of `x` rounded to `type`, to nearest, ties to even; beyond the largest number plus half a
/// unit it is Inf, NaN stays NaN.
constexpr unsigned round_to_bits(double x, Type type) {
    const FloatFormat f = float_format(type);
    const auto bits = __builtin_bit_cast(unsigned long long, x);
    const unsigned sign = static_cast<unsigned>(bits >> 63) << (f.bits - 1);
    const NumberClass kind = class_of(x);
    if (kind == NumberClass::nan) return f.magnitude_bits();
    if (kind != NumberClass::finite) return sign | f.infinity();

    const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
    if (exponent < f.min_exponent() - f.fraction_bits - 1) return sign;  // below half the least subnormal
    const auto significand = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    // Bits of the significand that the target cannot hold; more of them below its normal range.
    int drop = 52 - f.fraction_bits;
    if (exponent < f.min_exponent()) drop += f.min_exponent() - exponent;
    const auto kept = significand >> drop;
    const auto rest = significand & ((1ull << drop) - 1);
    const auto half = 1ull << (drop - 1);
    const auto up = (rest > half || (rest == half && (kept & 1))) ? 1ull : 0ull;
    // `kept` carries the implicit bit, so adding it to the exponent below counts one up, and so does a carry.
    const int field = exponent < f.min_exponent() ? 0 : exponent + f.bias - 1;
    const auto magnitude = (static_cast<unsigned long long>(field) << f.fraction_bits) + kept + up;
    return sign | (magnitude >= f.infinity() ? f.infinity() : static_cast<unsigned>(magnitude));
}

/// Relative error of rounding to `type`: half a unit in the last place.
constexpr double unit_roundoff(Type type) { return power_of_two(-float_format(type).fraction_bits - 1); }

/// Absolute error of rounding in `type`'s subnormal range: half its least subnormal.
constexpr double half_min_subnormal(Type type) {
    const FloatFormat f = float_format(type);
    return power_of_two(f.min_exponent() - f.fraction_bits - 1);
}

/// The distance from |x| to the next larger number of `type`, in the subnormal range too; x is finite.
constexpr double unit_in_last_place(double x, Type type) {
    const FloatFormat f = float_format(type);
    const auto bits = __builtin_bit_cast(unsigned long long, x);
    const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
    return power_of_two((exponent < f.min_exponent() ? f.min_exponent() : exponent) - f.fraction_bits);
}

/// sqrt, the same to the last bit on the host and on the device; neither has it without an include in common.
inline double root(double x) {
#if defined(__CUDACC_RTC__)
    return sqrt(x);
#else
    return __builtin_sqrt(x);
#endif
}

// How far a right sum of products of random numbers may lie from the fp64 sum.
//
// Signs are fair coins, whatever the magnitudes. So with sigma^2 = sum (a b)^2 the partial sums S_i are a random
// walk, and Hoeffding's and Levy's inequalities say P(some |S_i| > L sigma) <= 4 exp(-L^2 / 2), with no
// approximation. The same bound holds for any other sum of terms with fair signs. L = 9: 1.1e-17 an element,
// 3e-9 for the walks of 2^28 elements, and as much again for each of the few other sums below.
//
// A tensor core aligns a block of products and the running sum to the largest of them, cuts off what lies
// below its last bit and normalises by cutting again. Its unit is u = 2^-23 of the largest. Blocks are of 4
// products or more; longer blocks cut less often.
//  - Result of a block: cut towards zero by half a unit of S_i in the mean. Always against the sum's sign, so
//    this adds up: over n blocks half a unit each, of at most L sigma.
//  - Products: each cut towards zero, against its own sign. Those are fair, so the cuts are a walk of k steps
//    of at most a unit. So are the deviations of the block's cuts from half a unit, and the running sum's cuts
//    where a product is larger than it: 2 n steps more.
// Ordinary fp32 units (split K, SIMT) round to nearest, an unbiased error of half a unit for a product: less.
constexpr double random_deviations = 9;  ///< L

/// Of sums of k products, as shares of sigma where nothing else is said.
struct ErrorModel {
    double most;    ///< of an element's accumulation; exceeded with the probability above
    double rms;     ///< root of the mean square of it, over elements; at most
    double uneven;  ///< share that the mean square of roundings may exceed ulp^2 / 12 by
};

/// The root mean square needs no L: S_i has variance i sigma^2 / k. The bias of n blocks is then the sum of
/// that walk, n sigma / sqrt(3) (up to one block), times half a unit; and a unit is 2^-23 to 2^-24 of the sum:
/// 0.737 u in the root mean square over a normal distribution, wherever it lies between powers of two.
/// The random cuts have mean square u^2 / 3 of the larger of S_i (sigma^2 / 2 in the mean over i) and the
/// block's largest product (6 cuts a block, of all together sigma^2).
/// Rounding errs evenly within half an ulp only if what is rounded has many more bits than the type; one product of
/// two short numbers may lie half way all the time (3 / 2 of ulp^2 / 12, and the odd row of A does), a sum of some
/// hardly. Hence the share: 1 / 8, and 1 / k.
///
/// Of 8-bit operands the running sum has fewer bits: Hopper's keeps 13 behind the leading one from instruction to instruction, whose
/// 32 products are a block. Promoted, it begins anew after 128 products: with sigma_g of the g-th 128, sum sigma_g^2 = sigma^2, cuts
/// are a walk as before, now of 128 products and 4 blocks, whose squares add up to as many of sigma. The bias, half a unit of each block's sum, is
/// L sum sigma_g at most, and sum sigma_g <= sqrt(G) sigma; in the mean square it is that of one 128, since signs of their
/// sums are fair. The G sums are added in fp32.
inline ErrorModel error_model(long long k, bool of_bytes = false, bool promoted = false) {
    constexpr long long group = 128;
    if (promoted && k > group) {
        const double l = random_deviations, groups = static_cast<double>((k + group - 1) / group);
        const ErrorModel one = error_model(group, true), sums = error_model((k + group - 1) / group);
        const double blocks = group / 32, unit = power_of_two(-13);
        return {unit * l * (blocks / 2 * root(groups) + l * root(static_cast<double>(group) + 2 * blocks)) + sums.most,
                root(one.rms * one.rms + sums.rms * sums.rms), 0.125 + 1 / static_cast<double>(k)};
    }
    const double unit = power_of_two(of_bytes ? -13 : -23), l = random_deviations;
    const long long block = of_bytes ? 32 : 4;
    const double products = static_cast<double>(k), blocks = static_cast<double>((k + block - 1) / block);
    const double cuts = products + 2 * blocks;
    const double bias = 0.75 * unit / 2 * (blocks + 1);
    return {unit * l * (blocks / 2 + l * root(cuts)),
            root(bias * bias / 3 + unit * unit / 3 * (cuts / 2 + 6)), 0.125 + 1 / products};
}

/// The most that a right element may differ from `reference`: the accumulation's error, then rounding of
/// what was accumulated. `sigma` is the root of sum (a b)^2.
constexpr double error_bound(double reference, double sigma, const ErrorModel& model, Type type) {
    const double accumulated = model.most * sigma;
    const double magnitude = reference < 0 ? -reference : reference;
    return accumulated + unit_roundoff(type) * (magnitude + accumulated) + half_min_subnormal(type);
}

/// What is known of the errors of some elements, before any result is seen. Every error is taken as a share of
/// its element's sigma, so that one large row (an injected value's) does not hide the others.
struct ExpectedErrors {
    double elements;  ///< counted
    double rounding;  ///< sum of w = (ulp / sigma)^2 / 12, the mean square error of rounding
    double rounding_squares, rounding_most;  ///< sum of w^2, largest w
};

constexpr void add(ExpectedErrors& to, const ExpectedErrors& more) {
    to.elements += more.elements;
    to.rounding += more.rounding;
    to.rounding_squares += more.rounding_squares;
    if (more.rounding_most > to.rounding_most) to.rounding_most = more.rounding_most;
}

/// The most that the sum of (error / sigma)^2 over right elements comes to, for one set of elements with
/// probability of less than 4 exp(-L^2 / 2).
///
/// Rounding: the square of an error even within half an ulp has mean w, variance 4/5 w^2 and is at most
/// 3 w; Bernstein's inequality gives L sqrt(4/5 sum w^2) + 2/3 L^2 w_max above the mean.
/// Accumulation: n elements of mean square e^2 = rms^2, normal at the worst: n + L sqrt(2 n) + L^2 (Laurent
/// and Massart). The two are uncorrelated, and their product's sum, a walk with fair signs, is at most
/// L sqrt(sum e_i^2 w_i), where Cauchy and Schwarz give sum e_i^2 w_i <= e^2 sqrt(3 n sum w^2).
inline double allowed_errors(const ExpectedErrors& x, const ErrorModel& model) {
    const double l = random_deviations, n = x.elements, rms = model.rms;
    const double rounding = (1 + model.uneven) * x.rounding + l * root(0.8 * x.rounding_squares)
                            + 2.0 / 3 * l * l * x.rounding_most;
    const double accumulation = rms * rms * (n + l * root(2 * n) + l * l);
    return rounding + accumulation + 2 * l * rms * root(root(3 * n * x.rounding_squares));
}

/// The least magnitude that rounds to Inf: the largest number and half a unit.
constexpr double overflow_threshold(Type type) {
    const FloatFormat f = float_format(type);
    // Without Inf the last step below the next power of two is a NaN's.
    return power_of_two(f.max_exponent()) * (2.0 - (f.has_infinity ? 1 : 3) * unit_roundoff(type));
}

/// One element's verdict: 0 is equal, up to 1 is within the bound, above 1 is wrong, infinite where the
/// class (NaN, Inf, finite) is wrong. `expected` is what the reference rounds to; `error` is its difference
/// from the reference, where both are finite.
struct Verdict {
    double ratio;
    double bound;
    unsigned expected;
    double error;
};

constexpr double infinite_ratio() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }

/// The exact case: equal bit for bit to the rounded reference; a zero's sign is not asked for, since the
/// sign of a sum of zeros depends on how it starts.
constexpr Verdict judge_exact(unsigned got, double reference, Type type) {
    const unsigned expected = round_to_bits(reference, type);
    const bool nan =
        class_of_bits(expected, type) == NumberClass::nan && class_of_bits(got, type) == NumberClass::nan;
    const bool zero = ((got | expected) & float_format(type).magnitude_bits()) == 0;
    return {got == expected || nan || zero ? 0.0 : infinite_ratio(), 0.0, expected, 0.0};
}

/// The random case: within `error_bound`, and of the reference's class. Where the bound reaches across
/// the overflow threshold, both that Inf and a finite number within the bound are right.
constexpr Verdict judge_bounded(unsigned got, double reference, double sigma, const ErrorModel& model,
                                Type type) {
    const unsigned expected = round_to_bits(reference, type);
    const NumberClass got_class = class_of_bits(got, type);
    if (class_of(reference) != NumberClass::finite) {
        return {got_class == class_of(reference) ? 0.0 : infinite_ratio(), 0.0, expected, 0.0};
    }
    const double bound = error_bound(reference, sigma, model, type);
    if (got_class == NumberClass::nan) return {infinite_ratio(), bound, expected, 0.0};
    const double reach = model.most * sigma;
    if (got_class != NumberClass::finite) {
        const double towards = got_class == NumberClass::infinite ? reference : -reference;
        return {towards + reach >= overflow_threshold(type) ? 0.0 : infinite_ratio(), bound, expected, 0.0};
    }
    const double magnitude = reference < 0 ? -reference : reference;
    if (magnitude - reach >= overflow_threshold(type)) return {infinite_ratio(), bound, expected, 0.0};
    const double difference = value_of_bits(got, type) - reference;
    const double error = difference < 0 ? -difference : difference;
    return {error / bound, bound, expected, error};
}

/// What one element adds to the expected errors of its tile: nothing where it may be Inf or NaN, nor where sigma
/// lies below the normal range: there an ulp says nothing of sigma, and the element's own bound must do.
constexpr ExpectedErrors expected_error(double reference, double sigma, const ErrorModel& model, Type type) {
    const double magnitude = reference < 0 ? -reference : reference;
    // So that NaN does not pass.
    const bool finite = magnitude + model.most * sigma < overflow_threshold(type);
    if (!finite || sigma < power_of_two(float_format(type).min_exponent())) return {};
    // The ulp of what was accumulated, which may lie across a power of two.
    const double ulp = unit_in_last_place(magnitude + model.rms * sigma, type) / sigma;
    const double mean_square = ulp * ulp / 12;
    return {1, mean_square, mean_square * mean_square, mean_square};
}

}  // namespace rooftile
