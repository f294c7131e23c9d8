// A value in fp64 with the greatest error that fp32 arithmetic by our kernels may have made of it, and how a result is
// held against one. Compiled by the host's compiler and by NVRTC alike: no includes but names and C's functions, which
// NVRTC has by itself.
#pragma once

#include "kernels/measure/numbers.hpp"
#include "kernels/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cmath>
#endif

namespace rooftile {

/// Inf as error: undecided, as where a comparison or an overflow hangs on rounding.
struct Bounded {
    double value = 0;
    double error = 0;
};

namespace bounds {
inline constexpr double infinity = infinite_ratio();
inline constexpr double not_a_number = __builtin_bit_cast(double, 0x7ff8000000000000ull);
inline constexpr double unit = 1.0 / 16777216;          // 2^-24: half a unit in the last place of fp32
inline constexpr double ulp4 = 4 * unit;                // 2^-22
inline constexpr double tiny = 1.1754943508222875e-38;  // 2^-126: what flushing denormals may lose
inline constexpr double largest = 3.4028234663852886e38;
}  // namespace bounds

constexpr bool is_nan(double x) { return x != x; }
constexpr bool is_infinite(double x) { return x == bounds::infinity || x == -bounds::infinity; }
constexpr bool is_finite(double x) { return class_of(x) == NumberClass::finite; }
/// `x` where `y` is NaN.
constexpr double larger(double x, double y) { return x < y ? y : x; }

/// The 16-bit type that kernels call `element`, which is bf16 or fp16.
constexpr Type type_of(Element element) { return element == Element::fp16 ? Type::fp16 : Type::bf16; }

/// What makes a floating type: bits below the leading one, the least normal exponent, the largest number.
struct ElementFormat {
    int bits, min_exponent;
    double largest;
};
constexpr ElementFormat format_of(Element element) {
    if (element == Element::bf16) return {7, -126, 3.3895313892515355e38};
    if (element == Element::fp16) return {10, -14, 65504};
    return {23, -126, bounds::largest};
}

/// Distance to the next number of `element` above |value|: one unit in the last place.
constexpr double ulp_of(double value, Element element) {
    const ElementFormat f = format_of(element);
    // Of 0 and what is subnormal in fp64 it lies below every type's; of Inf and NaN, which have no unit, above.
    const int exponent = static_cast<int>(__builtin_bit_cast(unsigned long long, value) >> 52 & 0x7ff) - 1023;
    const bool normal = exponent > f.min_exponent && exponent < 1024;
    return power_of_two((normal ? exponent : f.min_exponent) - f.bits);
}

/// `value` as `element` holds it, rounded to nearest even; overflow gives Inf.
inline double rounded_to(double value, Element element) {
    if (element == Element::boolean) return value != 0;
    if (element == Element::int64 || !is_finite(value)) return value;
    if (element == Element::fp32) return static_cast<double>(static_cast<float>(value));
    const Type type = type_of(element);
    return value_of_bits(round_to_bits(value, type), type);
}

/// What a row operation gives. An error that came out as Inf times 0 bounds nothing: undecided.
inline Bounded settled(Bounded b) { return {b.value, is_nan(b.error) ? bounds::infinity : b.error}; }

/// The most that rounding to `element` adds, of what fp32 arithmetic made of it: half a unit in the last place of the
/// largest that it may be. Cutting off adds up to a whole one.
inline double rounding_of(Bounded b, Element element) { return ulp_of(fabs(b.value) + b.error, element) / 2; }

/// How `got`, read from a result of `element`, stands to what is expected: its error as a share of the bound, which is the
/// expected error and the rounding of the result's type. NaN must be NaN, Inf must be Inf of that sign; where not, the
/// ratio is infinite.
struct BoundedVerdict {
    double ratio = 0, bound = 0;
    bool undecided = false;
};
inline BoundedVerdict judge(double got, Bounded expected, Element element) {
    if (is_infinite(expected.error)) return {0, bounds::infinity, true};
    const auto same = [](bool right) { return right ? 0 : bounds::infinity; };
    if (is_nan(expected.value)) return {same(is_nan(got)), 0};
    if (!is_floating(element) || is_infinite(expected.value)) return {same(got == expected.value), 0};
    const double bound = expected.error + rounding_of(expected, element);
    if (is_nan(got)) return {bounds::infinity, bound};
    // A NaN as error, which is none of ours, bounds nothing.
    if (is_infinite(got)) return {same(fabs(expected.value) + bound >= format_of(element).largest), bound};
    const double ratio = fabs(got - expected.value) / bound;
    return {is_nan(ratio) ? bounds::infinity : ratio, bound};
}

}  // namespace rooftile
