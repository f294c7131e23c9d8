// Stands in for the header of this name, where kernels' text runs on the CPU.
#pragma once

#include <cmath>

namespace rooftile::ptx {

inline float exp2_approx(float x) { return std::exp2(x); }
inline float reciprocal_approx(float x) { return 1 / x; }
inline float rsqrt_approx(float x) { return 1 / std::sqrt(x); }
inline float sqrt_approx(float x) { return std::sqrt(x); }
inline float tanh_approx(float x) { return std::tanh(x); }
inline float divide_full(float x, float y) { return x / y; }
inline float product(float x, float y) { return x * y; }
inline float difference(float x, float y) { return x - y; }

}  // namespace rooftile::ptx
