// Stands in for kernels/ptx/special.cuh where kernels/expression/math.cuh or reduce.cuh runs on the CPU: exact
// values, rounded to fp32 and off by as much as the real instructions may be.
#pragma once

#include <cmath>

#include "kernels/ptx/convert.cuh"

namespace rooftile::ptx {

/// -1, 0 or 1 times the error that each instruction states.
inline double special_error = 0;

inline float off_by(double x, double relative) {
    const float y = float(x * (1 + special_error * relative));
    return std::fabs(y) < 1.17549435e-38f ? std::copysign(0.0f, y) : y;
}
constexpr double ulp2 = 1.0 / 4194304;  // 2^-22

inline float exp2_approx(float x) { return off_by(std::exp2(double(x)), ulp2); }
inline float reciprocal_approx(float x) { return off_by(1 / double(x), ulp2 / 2); }
inline float rsqrt_approx(float x) { return off_by(1 / std::sqrt(double(x)), ulp2 / 2); }
inline float sqrt_approx(float x) { return off_by(std::sqrt(double(x)), ulp2 / 2); }
// Flushes nothing; 2^-11 with its rounding.
inline float tanh_approx(float x) { return float(std::tanh(double(x)) * (1 + special_error * (1.0 / 2048 - ulp2 / 4))); }
// Flushes nothing.
inline float divide_full(float x, float y) { return float(double(x) / double(y) * (1 + special_error * ulp2)); }
inline float product(float x, float y) { return x * y; }
inline float difference(float x, float y) { return x - y; }
inline float product_within_1(float x, float y) {
    const float z = x * y;
    return z > 1 ? 1 : z > 0 ? z : 0;
}
inline float max_nan(float x, float y) { return x > y || x != x ? x : y; }
inline float min_nan(float x, float y) { return x < y || x != x ? x : y; }
template <Type type>
inline unsigned max_nan_2(unsigned x, unsigned y) {
    const auto greater = [](unsigned a, unsigned b) {
        return max_nan(widen<type>(a), widen<type>(b)) == widen<type>(b) ? b : a;
    };
    return greater(x & 0xffffu, y & 0xffffu) | greater(x >> 16, y >> 16) << 16;
}

}  // namespace rooftile::ptx
