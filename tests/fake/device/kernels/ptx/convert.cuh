// Stands in for kernels/ptx/convert.cuh where kernels/fuse/reduce.cuh runs on the CPU.
#pragma once

#include <bit>
#include <cmath>

#include "kernels/types.hpp"

#define __device__

namespace rooftile::ptx {

template <Type type>
inline float widen(unsigned bits) {
    if constexpr (type == Type::bf16) return std::bit_cast<float>(bits << 16);
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits >> 15 & 1 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? std::nanf("") : sign * HUGE_VALF;
    if (exponent == 0) return sign * std::ldexp(float(fraction), -24);
    return sign * std::ldexp(float(fraction + 1024), int(exponent) - 25);
}
template <Type type>
inline float widen_upper(unsigned word) {
    return widen<type>(word >> 16);
}
template <Type type>
inline float widen_lower(unsigned word, unsigned half_up) {
    if constexpr (type == Type::bf16) return std::bit_cast<float>(word * half_up);
    else return widen<type>(word & 0xffffu);
}

}  // namespace rooftile::ptx
