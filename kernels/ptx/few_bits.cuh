// Numbers of a few bits on their way to those of 16: loads of packed words, and arithmetic of two halves of a word. PTX ISA 9.7.9.8 "ld",
// 9.7.4.4 "fma".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

__device__ inline unsigned load_shared_byte(unsigned shared) {
    unsigned byte;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(shared));
    return byte;
}

/// 16 B of an address that is a multiple of them.
__device__ inline void load_shared_words(unsigned (&to)[4], unsigned shared) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(shared));
}

/// Two numbers of 16 bits by two others and more, rounded once; denormal ones are numbers too.
template <Type type>
__device__ inline unsigned fma2(unsigned x, unsigned by, unsigned more) {
    unsigned to;
    if constexpr (type == Type::bf16) asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(x), "r"(by), "r"(more));
    else asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(x), "r"(by), "r"(more));
    return to;
}

template <Type type>
__device__ inline float widened(unsigned short bits) {
    if constexpr (type == Type::bf16) return __uint_as_float(static_cast<unsigned>(bits) << 16);
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

}  // namespace rooftile::ptx
