// Between 16-bit types and fp32, one value at a time. PTX ISA 9.7.9.21 "cvt".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

/// The bits of a 16-bit number as fp32; exact.
template <Type type>
__device__ inline float widen(unsigned bits) {
    if constexpr (type == Type::bf16) {
        return __uint_as_float(bits << 16);  // bf16 is the upper half of an fp32
    } else {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
        return value;
    }
}

/// The upper half of `word` as fp32; exact.
template <Type type>
__device__ inline float widen_upper(unsigned word) {
    if constexpr (type == Type::bf16) return __uint_as_float(word & 0xffff0000u);
    else return widen<type>(word >> 16);
}

/// The lower half of a word as fp32; exact. `half_up` is 2^16, and the compiler must not know that: it would shift instead,
/// in the pipe of integers and logic, where most of what is done to bf16 goes. Products have another one.
template <Type type>
__device__ inline float widen_lower(unsigned word, unsigned half_up) {
    if constexpr (type == Type::bf16) return __uint_as_float(word * half_up);
    else return widen<type>(word);
}

/// `value` rounded to nearest even, as bits.
template <Type type>
__device__ inline unsigned short narrow(float value) {
    unsigned short bits;
    if constexpr (type == Type::bf16) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

}  // namespace rooftile::ptx
