// Numbers of a few bits on their way to those of 16: loads of packed words, and arithmetic of two halves of a word. PTX ISA 9.7.9.8 "ld",
// 9.7.8.6 "lop3", 9.7.4.2 "sub".
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

/// The bits of `word` that `mask` has, amid `others`: one instruction.
template <unsigned mask>
__device__ inline unsigned bits_amid(unsigned word, unsigned others) {
    unsigned to;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(to) : "r"(word), "n"(mask), "r"(others));
    return to;
}

/// The same of the bits that `word` has not.
template <unsigned mask>
__device__ inline unsigned other_bits_amid(unsigned word, unsigned others) {
    unsigned to;
    asm("lop3.b32 %0, %1, %2, %3, 0xae;" : "=r"(to) : "r"(word), "n"(mask), "r"(others));
    return to;
}

/// Two numbers of 16 bits less two others, rounded.
template <Type type>
__device__ inline void subtract2(unsigned& from, unsigned others) {
    if constexpr (type == Type::bf16) asm("sub.bf16x2 %0, %0, %1;" : "+r"(from) : "r"(others));
    else asm("sub.f16x2 %0, %0, %1;" : "+r"(from) : "r"(others));
}

template <Type type>
__device__ inline float widened(unsigned short bits) {
    if constexpr (type == Type::bf16) return __uint_as_float(static_cast<unsigned>(bits) << 16);
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

}  // namespace rooftile::ptx
