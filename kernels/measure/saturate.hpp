// How a result of 8 bits is judged. What is larger than the type's largest number, Inf too, is that number, as cvt.satfinite and
// PyTorch's scaled products have it; NaN stays NaN. On the host and on the device alike.
#pragma once

#include "kernels/expression/bounded.hpp"
#include "kernels/measure/numbers.hpp"

namespace rooftile {

/// What a result of `type`, which has 8 bits, is rounded from.
constexpr double saturated(double x, Type type) {
    if (class_of(x) == NumberClass::nan) return x;
    const double largest = value_of_bits(float_format(type).infinity() - 1, type);
    return x > largest ? largest : x < -largest ? -largest : x;
}

/// judge_exact() of one.
constexpr Verdict judge_exact_saturated(unsigned got, double reference, Type type) {
    return judge_exact(got, saturated(reference, type), type);
}

/// judge_bounded() of one: it is never infinite.
constexpr Verdict judge_bounded_saturated(unsigned got, double reference, double sigma, const ErrorModel& model, Type type) {
    const double finite = saturated(reference, type);
    if (class_of(reference) == NumberClass::infinite || class_of(reference) == NumberClass::negative_infinite)
        return judge_exact(got, finite, type);
    Verdict v = judge_bounded(got, finite, sigma, model, type);
    const NumberClass kind = class_of_bits(got, type);
    if (kind == NumberClass::infinite || kind == NumberClass::negative_infinite) v.ratio = infinite_ratio();
    return v;
}

/// What rounding to `type` adds at most, of what fp32 arithmetic made of it: half a unit in the last place.
inline double rounding_to(Bounded b, Type type) { return unit_in_last_place(fabs(b.value) + b.error, type) / 2; }

/// judge() of an expression's value that is stored in `type`.
inline BoundedVerdict judge_saturated(double got, Bounded expected, Type type) {
    if (is_infinite(expected.error)) return {0, bounds::infinity, true};
    const auto same = [](bool right) { return right ? 0 : bounds::infinity; };
    if (is_nan(expected.value)) return {same(is_nan(got)), 0};
    const bool infinite = is_infinite(expected.value);
    expected.value = saturated(expected.value, type);
    if (infinite) return {same(got == expected.value), 0};
    const double bound = expected.error + rounding_to(expected, type);
    const double ratio = fabs(got - expected.value) / bound;
    return {is_finite(got) && !is_nan(ratio) ? ratio : bounds::infinity, bound};
}

}  // namespace rooftile
