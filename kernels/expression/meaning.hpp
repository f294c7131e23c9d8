// What point-wise operators mean: each in fp64 with a bound on what fp32 arithmetic by kernels/expression/math.cuh may
// make of it (running error analysis). The rows of the operators name these, for the host's evaluation and for the
// device's: the same lines, compiled twice.
#pragma once

#include "kernels/expression/bounded.hpp"
#include "kernels/measure/philox.hpp"

namespace rooftile {

/// One element of a point-wise operation.
struct ElementCall {
    Bounded x, y, z;           ///< operands, as far as there are
    unsigned long long index;  ///< in the operation's tensor: dropout is keyed on it
    Element element;           ///< of the result
    Element precision;         ///< that the outputs ask of the functions on the way to them
    double value;              ///< of dropout: p
    unsigned long long seed, offset;
    bool of_flags;  ///< an operator of numbers, between flags
};

/// What a device function states of its error beside an exact argument.
struct StatedError {
    double relative = 0, absolute = 0;
};

/// Dropout's flag for element `index`: true where it is kept. The same numbers as kernels/expression/dropout.cuh, from the
/// definition alone.
inline bool dropout_keeps(unsigned long long index, double p, unsigned long long seed,
                          unsigned long long offset) {
    const auto threshold = static_cast<unsigned long long>(llround(p * 4294967296.0));
    const PhiloxBlock block = philox(index / 8, offset, dropout_keys(seed));
    const unsigned place = static_cast<unsigned>(index % 8) / 2;
    // Selects, not an index: on the device the words stay in registers.
    const unsigned low = place == 0 ? block.word[0] : block.word[1];
    const unsigned high = place == 2 ? block.word[2] : block.word[3];
    const unsigned word = place < 2 ? low : high;
    return (index % 2 ? word : word * dropout_fold) >= threshold;
}

namespace meaning {

using namespace bounds;

// Of exact elements.

inline double exact_sum(double x, double y) { return x + y; }
inline double exact_difference(double x, double y) { return x - y; }
inline double exact_product(double x, double y) { return x * y; }
inline double exact_quotient(double x, double y) { return x / y; }
inline double exact_power(double x, double y) { return pow(x, y); }
inline double exact_minimum(double x, double y) { return fmin(x, y); }
inline double exact_maximum(double x, double y) { return fmax(x, y); }
inline double exact_less(double x, double y) { return x < y; }
inline double exact_less_equal(double x, double y) { return x <= y; }
inline double exact_greater(double x, double y) { return x > y; }
inline double exact_greater_equal(double x, double y) { return x >= y; }
inline double exact_equal(double x, double y) { return x == y; }
inline double exact_not_equal(double x, double y) { return x != y; }

// Of one; the second stands for nothing, so that all have one type.

inline double exact_negative(double x, double) { return -x; }
inline double exact_magnitude(double x, double) { return fabs(x); }
inline double exact_exponential(double x, double) { return exp(x); }
inline double exact_logarithm(double x, double) { return log(x); }
inline double exact_root(double x, double) { return sqrt(x); }
inline double exact_inverse_root(double x, double) { return 1 / sqrt(x); }
inline double exact_tanh(double x, double) { return tanh(x); }
inline double exact_erf(double x, double) { return erf(x); }
inline double exact_sigmoid(double x, double) { return 1 / (1 + exp(-x)); }
inline double exact_silu(double x, double) { return x * (1 / (1 + exp(-x))); }
inline double exact_relu(double x, double) { return is_nan(x) ? x : larger(x, 0); }
inline double exact_softplus(double x, double) { return larger(x, 0) + log1p(exp(-fabs(x))); }
inline double exact_gelu(double x, double) {
    return x * 0.5 * erfc(-x / sqrt(2.0)) * (x == -infinity ? not_a_number : 1);
}
inline double exact_gelu_tanh(double x, double) {
    if (is_infinite(x)) return x > 0 ? x : not_a_number;
    const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}

// What device functions state.

inline StatedError stated_none(double, Element) { return {}; }
inline StatedError stated_2_ulp(double, Element) { return {2 * ulp4}; }
inline StatedError stated_exponential(double x, Element precision) {
    return {((precision == Element::bf16 ? 3 : 2) + fabs(x)) * ulp4};
}
inline StatedError stated_softplus(double x, Element) { return {(4 + fabs(x)) * ulp4}; }
inline StatedError stated_sigmoid(double x, Element) { return {(4 + fabs(x)) * ulp4}; }  // and silu
inline StatedError stated_tanh(double, Element precision) {
    return {precision == Element::bf16 ? 1.0 / 2048 : precision == Element::fp16 ? 1.0 / 131072 : 1.0 / 524288};  // 2^-11, 2^-17, 2^-19
}
inline StatedError stated_gelu(double x, Element precision) {
    if (precision == Element::bf16) return {(32 + x * x) * 1.1e-5};
    if (precision == Element::fp16) return {1.0 / 131072, 5.9e-11};     // 2^-17, 2^-34
    return {1.0 / 524288 + (x < 0 ? (8 + x * x) * ulp4 : 0)};  // 2^-19
}
inline StatedError stated_gelu_tanh(double x, Element) {
    const double a = fabs(x), steep = a * (1.6 + 0.08 * a * a);
    return {(8 + (steep < 200 ? steep : 200)) * ulp4};
}

/// After fp32 has made its own rounding of `relative`; what leaves fp32's range is undecided, and what comes of it: that
/// may be Inf or NaN, also where the value is.
inline Bounded settled(double value, double error, double relative) {
    if (is_infinite(error)) return {value, infinity};
    if (!is_finite(value)) return {value, 0};
    error += relative * fabs(value) + tiny;
    if (!(fabs(value) + error < largest)) error = infinity;
    return {value, is_nan(error) ? infinity : error};
}

/// Of one operand: how far the function goes within the argument's error, beside what its code states; outside its domain
/// the result is undecided.
template <double (*exact)(double, double), StatedError (*stated)(double, Element)>
inline Bounded of_one(Bounded x, Element precision) {
    double y = 0, spread = 0;
    bool leaves = false;
    // One text of the function for all three places: the middle first.
    const int places = x.error > 0 && !is_infinite(x.error) ? 3 : 1;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int place = 0; place < places; ++place) {
        const double at = exact(place == 0 ? x.value : place == 1 ? x.value + x.error : x.value - x.error, 0);
        if (place == 0) y = at;
        else if (is_nan(at) != is_nan(y)) leaves = true;
        else spread = larger(spread, fabs(at - y) * 1.5);  // of two Inf or two NaN: none
    }
    if (leaves || is_infinite(x.error)) return {y, infinity};
    const StatedError own = stated(is_finite(x.value) ? x.value : 0, precision);
    return settled(y, spread + own.absolute, own.relative);
}
template <double (*exact)(double, double), StatedError (*stated)(double, Element) = stated_none>
inline Bounded function(const ElementCall& call) {
    return of_one<exact, stated>(call.x, call.precision);
}

inline Bounded itself(const ElementCall& call) { return call.x; }

/// A sum or a difference.
template <double (*exact)(double, double)>
inline Bounded sum(const ElementCall& call) {
    return settled(exact(call.x.value, call.y.value), call.x.error + call.y.error, unit);
}

inline Bounded product_of(Bounded x, Bounded y) {
    const double a = x.value, b = y.value;
    if (is_infinite(x.error + y.error)) return {a * b, infinity};
    if (is_nan(a) || is_nan(b)) return {a * b, 0};
    // Inf times what may be 0, or of the other sign, is anything; an overflow is one in fp32, too, but may be less.
    if (is_infinite(a) || is_infinite(b)) {
        const bool sure = (x.error == 0 || fabs(a) > x.error) && (y.error == 0 || fabs(b) > y.error);
        return {a * b, sure ? 0 : infinity};
    }
    if (is_infinite(a * b)) return {a * b, infinity};
    return settled(a * b, fabs(a) * y.error + fabs(b) * x.error + x.error * y.error, unit);
}
inline Bounded product(const ElementCall& call) { return product_of(call.x, call.y); }

inline Bounded quotient(const ElementCall& call) {
    const Bounded x = call.x, y = call.y;
    const double a = x.value, b = y.value;
    if (y.error > 0 && fabs(b) <= y.error) return {a / b, infinity};
    if (is_infinite(x.error + y.error)) return {a / b, infinity};
    if (is_infinite(a)) return {a / b, 0};
    const double e = y.error + x.error == 0 ? 0 : (x.error + fabs(a / b) * y.error) / (fabs(b) - y.error);
    return settled(a / b, e, 4 * unit);
}

inline Bounded power(const ElementCall& call) {
    const Bounded x = call.x, n = call.y;
    // As PyTorch: a root of -Inf is NaN, where C's pow gives Inf.
    if (n.error == 0 && n.value == 0.5) return of_one<exact_root, stated_2_ulp>(x, Element::fp32);
    if (n.error == 0 && n.value == -0.5) return of_one<exact_inverse_root, stated_2_ulp>(x, Element::fp32);
    double y = 0, spread = 0;
    const int places = x.error + n.error == infinity ? 1 : 5;  // itself, and the corners of the errors
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int place = 0; place < places; ++place) {
        const double dx = place == 0 ? 0 : place <= 2 ? -x.error : x.error;
        const double dn = place == 0 ? 0 : place % 2 ? -n.error : n.error;
        const double at = pow(x.value + dx, n.value + dn);
        if (place == 0) y = at;
        else if (is_nan(at) != is_nan(y)) spread = infinity;
        else if (is_finite(y)) spread = larger(spread, fabs(at - y) * 1.5);
    }
    if (places == 1) return {y, infinity};
    return settled(y, spread, (4 + fabs(n.value)) * 4 * unit);
}

/// A minimum or maximum: one of the operands.
template <double (*exact)(double, double)>
inline Bounded choice(const ElementCall& call) {
    const double error = larger(call.x.error, call.y.error);
    if (is_nan(call.x.value) || is_nan(call.y.value)) return {not_a_number, error};
    return {exact(call.x.value, call.y.value), error};
}

template <double (*exact)(double, double)>
inline Bounded comparison(const ElementCall& call) {
    const double a = call.x.value, b = call.y.value, reach = call.x.error + call.y.error;
    const bool hangs = is_infinite(reach) || (reach > 0 && !is_nan(a) && !is_nan(b) && !(fabs(a - b) > reach));
    return {exact(a, b), hangs ? infinity : 0};
}

inline Bounded cast(const ElementCall& call) {
    if (call.element == Element::fp32) return call.x;
    const double r = rounded_to(call.x.value, call.element);
    return {r, call.x.error == 0 ? 0 : call.x.error + ulp_of(call.x.value, call.element)};
}

inline Bounded where(const ElementCall& call) {
    const Bounded chosen = call.x.value != 0 ? call.y : call.z;
    return is_infinite(call.x.error) ? Bounded{chosen.value, infinity} : chosen;
}

inline Bounded dropout(const ElementCall& call) {
    const double scale = call.value < 1 ? 1 / (1 - call.value) : 0;
    const bool keep = dropout_keeps(call.index, call.value, call.seed, call.offset);
    return product_of(call.x, {keep ? scale : 0.0, keep ? scale * unit : 0});
}

/// What the call's operation gave; between flags, a flag.
inline Bounded as_flag(const ElementCall& call, Bounded given) {
    if (!call.of_flags) return given;
    return {given.value != 0 ? 1.0 : 0.0, given.error > tiny ? given.error : 0};
}

}  // namespace meaning
}  // namespace rooftile
