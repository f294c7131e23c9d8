// The arithmetic of verification, the same lines on the host (tests) and on the device (verify.cuh):
// exact conversion of 16-bit types, rounding to nearest even, and the error bound. No includes.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// What makes one 16-bit floating-point type: 1 sign bit, `exponent_bits`, `fraction_bits`.
struct FloatFormat {
    int fraction_bits;
    int bias;

    constexpr unsigned sign_bit() const { return 0x8000u; }
    constexpr unsigned infinity() const { return 0x7fffu & ~((1u << fraction_bits) - 1u); }
    constexpr int min_exponent() const { return 1 - bias; }  ///< of a normal number
};

/// IEEE binary16, and bfloat16: the upper half of binary32.
constexpr FloatFormat float_format(Type type) {
    return type == Type::bf16 ? FloatFormat{7, 127} : FloatFormat{10, 15};
}

/// 2^e for e within the normal range of a double.
constexpr double power_of_two(int e) {
    return __builtin_bit_cast(double, static_cast<unsigned long long>(e + 1023) << 52);
}

enum class NumberClass : int { finite, infinite, negative_infinite, nan };

constexpr NumberClass class_of_bits(unsigned bits, Type type) {
    const FloatFormat f = float_format(type);
    const unsigned magnitude = bits & 0x7fffu;
    if (magnitude > f.infinity()) return NumberClass::nan;
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

/// The value of 16 bits of `type`; exact, since a double has more of everything.
constexpr double value_of_bits(unsigned bits, Type type) {
    const FloatFormat f = float_format(type);
    const unsigned magnitude = bits & 0x7fffu;
    const auto sign = static_cast<unsigned long long>(bits >> 15) << 63;
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
    const unsigned sign = static_cast<unsigned>(bits >> 63) << 15;
    const NumberClass kind = class_of(x);
    if (kind == NumberClass::nan) return 0x7fffu;
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

/// The relative error of a sum of `k` products in fp32 on tensor cores, against the sum of |a||b|.
///
/// Products of 16-bit numbers are exact. A tensor core aligns the products of a block and the running
/// sum to the largest of them and cuts off what lies below its last bit, so each of the n + 1 terms and
/// the result of the block err by less than one unit, u = 2^-23, of at most sum|a||b|: n + 2 units for n
/// products. Blocks have 4 products or more (fewer terms cost less), hence k + 2 ceil(k / 4) units.
/// A sum in any order on ordinary fp32 units, with its u = 2^-24, lies within this too.
constexpr double accumulation_error(long long k) {
    return static_cast<double>(k + 2 * ((k + 3) / 4)) * power_of_two(-23);
}

/// The most that a right result may differ from `reference`, given the sum of |a||b| and the
/// accumulation error `gamma`: the accumulation's error, then rounding of what was accumulated.
constexpr double error_bound(double reference, double absolute_sum, double gamma, Type type) {
    const double accumulated = gamma * absolute_sum;
    const double magnitude = reference < 0 ? -reference : reference;
    return accumulated + unit_roundoff(type) * (magnitude + accumulated) + half_min_subnormal(type);
}

/// The least magnitude that rounds to Inf: the largest number and half a unit.
constexpr double overflow_threshold(Type type) {
    const FloatFormat f = float_format(type);
    return power_of_two(f.bias) * (2.0 - unit_roundoff(type));
}

/// One element's verdict: 0 is equal, up to 1 is within the bound, above 1 is wrong, infinite where the
/// class (NaN, Inf, finite) is wrong. `expected` is what the reference rounds to.
struct Verdict {
    double ratio;
    double bound;
    unsigned expected;
};

constexpr double infinite_ratio() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }

/// The exact case: equal bit for bit to the rounded reference; a zero's sign is not asked for, since the
/// sign of a sum of zeros depends on how it starts.
constexpr Verdict judge_exact(unsigned got, double reference, Type type) {
    const unsigned expected = round_to_bits(reference, type);
    const bool nan =
        class_of_bits(expected, type) == NumberClass::nan && class_of_bits(got, type) == NumberClass::nan;
    const bool zero = ((got | expected) & 0x7fffu) == 0;
    return {got == expected || nan || zero ? 0.0 : infinite_ratio(), 0.0, expected};
}

/// The random case: within `error_bound`, and of the reference's class. Where the bound reaches across
/// the overflow threshold, both that Inf and a finite number within the bound are right.
constexpr Verdict judge_bounded(unsigned got, double reference, double absolute_sum, double gamma,
                                Type type) {
    const unsigned expected = round_to_bits(reference, type);
    const NumberClass got_class = class_of_bits(got, type);
    if (class_of(reference) != NumberClass::finite) {
        return {got_class == class_of(reference) ? 0.0 : infinite_ratio(), 0.0, expected};
    }
    const double bound = error_bound(reference, absolute_sum, gamma, type);
    if (got_class == NumberClass::nan) return {infinite_ratio(), bound, expected};
    const double reach = gamma * absolute_sum;
    if (got_class != NumberClass::finite) {
        const double towards = got_class == NumberClass::infinite ? reference : -reference;
        return {towards + reach >= overflow_threshold(type) ? 0.0 : infinite_ratio(), bound, expected};
    }
    const double magnitude = reference < 0 ? -reference : reference;
    if (magnitude - reach >= overflow_threshold(type)) return {infinite_ratio(), bound, expected};
    const double difference = value_of_bits(got, type) - reference;
    return {(difference < 0 ? -difference : difference) / bound, bound, expected};
}

}  // namespace rooftile
