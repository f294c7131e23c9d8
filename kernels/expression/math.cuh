// The functions of the expression language in fp32. Each states its error against the exact value; arguments
// are taken as exact. NaN gives NaN throughout, Inf what PyTorch gives.
#pragma once

#include "kernels/ptx/special.cuh"

namespace rooftile::expression {

constexpr float log2_e = 1.4426950408889634f;
/// Generated code writes literals of these values by name.
constexpr float infinity = __builtin_bit_cast(float, 0x7f800000);
constexpr float not_a_number = __builtin_bit_cast(float, 0x7fc00000);

/// At most 2 ulp.
__device__ inline float divide(float x, float y) { return ptx::divide_full(x, y); }
/// NaN where either is.
__device__ inline float minimum(float x, float y) { return ptx::min_nan(x, y); }
__device__ inline float maximum(float x, float y) { return ptx::max_nan(x, y); }
__device__ inline float relu(float x) { return ptx::max_nan(x, 0.0f); }
/// sqrt and rsqrt: at most 2 ulp.
__device__ inline float square_root(float x) { return ptx::sqrt_approx(x); }
__device__ inline float inverse_root(float x) { return ptx::rsqrt_approx(x); }

/// At most 2 ulp.
__device__ inline float exponential(float x) { return expf(x); }
/// Relative error at most (2 + |x|) * 2^-22, 0 below 2^-126: enough for a result in fp16, or below one that is near 1.
__device__ inline float exponential_16(float x) { return ptx::exp2_approx(x * log2_e); }
/// Relative error at most (3 + |x|) * 2^-22: enough for a result in bf16. The power flushes what is below 2^-126, the square of its root
/// does not.
__device__ inline float exponential_bf16(float x) {
    const float root = ptx::exp2_approx(x * (0.5f * log2_e));
    return root * root;
}
/// A value less the greatest of its row, which is one of them, or less their mean, which all of them may be: 0 there. Fused with the
/// product or quotient that the value is, it would be what that was rounded by: of a value beyond 2^127 no power of two holds e to that.
__device__ inline float apart(float value, float of_row) { return ptx::difference(value, of_row); }
/// At most 2 ulp.
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline float error_function(float x) { return erff(x); }

/// x to a whole power by squaring: at most |n| ulp, of negative ones 3 |n|: there the reciprocal comes first, since one of a power that is
/// beyond fp32 would be 0 where the value is not.
template <int n>
__device__ inline float power(float x) {
    if constexpr (n < 0) return power<-n>(divide(1.0f, x));
    else if constexpr (n == 0) return 1.0f;
    else if constexpr (n == 1) return x;
    else if constexpr (n % 2 == 0) return power<n / 2>(x * x);
    else return x * power<n / 2>(x * x);
}

/// 1 / (1 + 2^u) by `lowered` = u - lowered_by. A reciprocal flushes what is below 2^-126: this one is 2^lowered_by times as large, and the
/// product that brings it down, which does not flush, goes down to 2^-142.
constexpr float lowered_by = 16, lowering = 1.0f / 65536;  // 2^-lowered_by
__device__ inline float logistic_2(float lowered) {
    return lowering * ptx::reciprocal_approx(lowering + ptx::exp2_approx(lowered));
}
/// 1 / (1 + e^-x): relative error at most (4 + |x|) * 2^-22, and 2^-142 on top.
__device__ inline float sigmoid(float x) { return logistic_2(fmaf(-log2_e, x, -lowered_by)); }
/// x * sigmoid(x), with its relative error; 2^-135 on top.
__device__ inline float silu(float x) { return x * sigmoid(x); }

/// log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which neither overflows nor cancels. Relative error at most
/// (4 + |x|) * 2^-22. The logarithm is e * p(e), p the polynomial of least relative error, 3.0e-8, over e in 0 .. 1, by
/// Remez' exchange against fp64's log1p.
__device__ inline float softplus(float x) {
    const float root = ptx::exp2_approx(-0.5f * log2_e * fabsf(x)), e = root * root;  // as exponential_bf16()
    float p = fmaf(e, 0.00523269409f, -0.0295052379f);
    p = fmaf(e, p, 0.0782259479f);
    p = fmaf(e, p, -0.136632457f);
    p = fmaf(e, p, 0.191060066f);
    p = fmaf(e, p, -0.24842982f);
    p = fmaf(e, p, 0.333190978f);
    p = fmaf(e, p, -0.499994934f);
    p = fmaf(e, p, 0.99999994f);
    return fmaf(e, p, ptx::max_nan(x, 0.0f));
}

/// Relative error at most 2^-11: enough for a result in bf16, half of whose unit in the last place is 2^-9 or
/// more. One instruction.
__device__ inline float hyperbolic_tangent_bf16(float x) { return ptx::tanh_approx(x); }
/// Relative error at most 2^-17: enough for a result in fp16, or for what is added to others. As hyperbolic_tangent(), but that
/// Taylor's series ends with x^3, and holds for less.
__device__ inline float hyperbolic_tangent_16(float x) {
    const float far = fmaf(-2.0f, ptx::reciprocal_approx(1.0f + ptx::exp2_approx(2.0f * log2_e * fabsf(x))), 1.0f);
    const float near = fmaf(x * x * x, -1.0f / 3.0f, x);
    return fabsf(x) < 0.07f ? near : copysignf(far, x);
}
/// Relative error at most 2^-17, for scores: one special function, of which they have few to spare. It ends 2^-19 from 1, and so is none
/// for 1 - tanh(x). x P(x^2) / Q(x^2), of least relative error, 1.1e-6, over |x| in 0 .. 7, by Lawson's weights against tanh.
__device__ inline float hyperbolic_tangent_of_score(float x) {
    const float a = ptx::max_nan(ptx::min_nan(x, 7.0f), -7.0f), s = a * a;
    float p = fmaf(s, 3.99614439e-6f, 0.00229316003f);
    p = fmaf(s, p, 0.123221425f);
    p = fmaf(s, p, 0.999998972f);
    float q = fmaf(s, 0.000143991523f, 0.021151967f);
    q = fmaf(s, q, 0.456547043f);
    q = fmaf(s, q, 1.0f);
    return a * p * ptx::reciprocal_approx(q);
}
/// Relative error at most 2^-19. Cannot overflow: e^2|x| = Inf gives 1.
__device__ inline float hyperbolic_tangent(float x) {
    const float a = fabsf(x);
    const float far = 1.0f - 2.0f * ptx::reciprocal_approx(1.0f + ptx::exp2_approx(2.0f * log2_e * a));
    // Near 0 the difference would cancel: Taylor's series to x^9, whose next term is below 2^-24 there.
    const float s = x * x;
    float near = fmaf(s, 62.0f / 2835.0f, -17.0f / 315.0f);
    near = fmaf(s, near, 2.0f / 15.0f);
    near = fmaf(s, near, -1.0f / 3.0f);
    near = fmaf(s * x, near, x);
    return a < 0.3f ? near : copysignf(far, x);
}

/// x * Phi(x) from Phi(-|x|) / lowering, Phi the normal distribution: Phi(x) is Phi(-|x|) or one less that. -Inf * 0 is NaN,
/// as PyTorch's own. The step at 0 is a product, 0 for NaN, which 0 * Inf is: comparisons go to the pipe of integers and
/// logic, which has more to do wherever types are narrow.
__device__ inline float gelu_of(float x, float lifted_phi) {
    const float step = ptx::product_within_1(x, infinity);
    return x * fabsf(fmaf(lifted_phi, -lowering, step));
}

/// GELU by erf. Relative error at most 2^-19 for x >= 0 and (8 + x^2) * 2^-22 more below; absolute at most
/// 2^-120 on top. Phi(-a) = e^(-a^2 / 2) * p(t), t = 1 / (1 + 0.264 a); p is the minimax polynomial of
/// relative error 5.4e-7 over a in 0 .. 13.3, by linear programming against fp64's log Phi.
__device__ inline float gelu(float x) {
    const float t = ptx::reciprocal_approx(fmaf(fabsf(x), 0.264f, 1.0f));
    float p = fmaf(t, -0.0692625418f, 0.203366131f);
    p = fmaf(t, p, -0.0761997774f);
    p = fmaf(t, p, 0.148627385f);
    p = fmaf(t, p, 0.0804757029f);
    p = fmaf(t, p, 0.107819058f);
    p = fmaf(t, p, 0.105173782f);
    return gelu_of(x, t * p * ptx::exp2_approx(fmaf(-0.5f * log2_e * x, x, lowered_by)));
}

/// GELU by erf for results of 16 bits: log2 Phi(-a) as one polynomial over a in 0 .. 13, below which bf16 has
/// no normal number; its seventh coefficient is below 0, so that it goes on falling. Minimax by linear
/// programming against fp64's log Phi.
/// bf16: relative error at most (32 + x^2) * 1.1e-5, absolute at most 2^-120 on top: what the steep end may
/// lose, small arguments gain; rounded to bf16 at most 0.64 of its unit in the last place.
/// fp16: relative at most 2^-17, absolute at most 2^-34 on top: its least number is 2^-24.
template <Type type>
__device__ inline float gelu_16(float x) {
    constexpr bool wide = type == Type::bf16;  // in range
    const float a = fabsf(x);
    float q = fmaf(a, wide ? -4.27049628e-07f : -1.59401111e-06f, wide ? 2.24555315e-05f : 5.77155115e-05f);
    q = fmaf(a, q, wide ? -0.000496198132f : -0.000906327798f);
    q = fmaf(a, q, wide ? 0.00609304663f : 0.0084346002f);
    q = fmaf(a, q, wide ? -0.0470398888f : -0.0538489446f);
    q = fmaf(a, q, wide ? -0.467885226f : -0.458542019f);
    q = fmaf(a, q, wide ? -1.14647019f : -1.15123165f);
    q = fmaf(a, q, lowered_by + (wide ? -1.00039256f : -0.999996066f));
    return gelu_of(x, ptx::exp2_approx(q));
}

/// 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = 0.79788456 (x + 0.044715 x^3): nothing cancels, nothing
/// overflows to NaN. Relative error at most (8 + |2u|) * 2^-22, and 2^-138 on top.
__device__ inline float gelu_tanh(float x) {
    constexpr float scale = -2.0f * 0.7978845608028654f * log2_e;
    return x * logistic_2(fmaf(x, fmaf(x * x, 0.044715f * scale, scale), -lowered_by));
}

}  // namespace rooftile::expression
