// Instructions of the special function unit and what stands beside them. PTX ISA 9.7.3 "floating point".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

/// 2^x; relative error at most 2^-22 (2 ulp); 2^-Inf = 0.
__device__ inline float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// 1 / x; at most 1 ulp; 1 / Inf = 0.
__device__ inline float reciprocal_approx(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// Relative error at most 2^-22.9.
__device__ inline float rsqrt_approx(float x) {
    float y;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// Relative error at most 2^-23.
__device__ inline float sqrt_approx(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// Relative error at most 2^-11.
__device__ inline float tanh_approx(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/// x / y over the whole range; at most 2 ulp.
__device__ inline float divide_full(float x, float y) {
    float z;
    asm("div.full.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
/// x * y, rounded, whatever adds to it: the compiler makes no fused product of it.
__device__ inline float product(float x, float y) {
    float z;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
/// x - y with x as fp32 holds it: never fused with the product that x may be.
__device__ inline float difference(float x, float y) {
    float d;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(d) : "f"(x), "f"(y));
    return d;
}
/// x * y, but no less than 0 and no more than 1; 0 where it is NaN.
__device__ inline float product_within_1(float x, float y) {
    float z;
    asm("mul.sat.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
/// The greater and the lesser; NaN where either is.
__device__ inline float max_nan(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
__device__ inline float min_nan(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

/// Of each half.
template <Type type>
__device__ inline unsigned max_nan_2(unsigned x, unsigned y) {
    unsigned z;
    if constexpr (type == Type::bf16) asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    else asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    return z;
}

}  // namespace rooftile::ptx
