// Packed weights on their way from shared memory to the matrix instruction's first operand: whole numbers less their zero points, exact in
// 16 bits. mma.sync m16n8k16 and a warp of wgmma m64nNk16 take that operand alike.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/few_bits.cuh"

namespace rooftile {

template <Type type, QuantisedLayout layout>
struct QuantisedFragment {
    /// Four fragments' words of 16-bit whole numbers less their zero points: of 4 bits amid a number of which they are the last bits.
    __device__ static void unpack(unsigned (&a)[4], unsigned packed, const unsigned (&zero)[2]) {
        constexpr unsigned one = type == Type::bf16 ? 0x43004300 : 0x64006400;  // 128 or 1024, whose unit is the last bit
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a[i] = ptx::bits_amid<0x000f000f>(packed >> 4 * i, one);
            ptx::subtract2<type>(a[i], zero[i % 2]);
        }
    }
    /// The same of two words of 8 bits, 128 added to each weight.
    __device__ static void unpack(unsigned (&a)[4], unsigned low, unsigned high) {
        constexpr unsigned top = type == Type::bf16 ? 0x43434343 : 0x64646464;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Two bytes, each below the first byte of 1024, or of 128.
            a[i] = __byte_perm(i < 2 ? low : high, top, i % 2 == 0 ? 0x4140 : 0x4342);
            if constexpr (type == Type::fp16) ptx::subtract2<type>(a[i], 0x64806480);
            else {
                // 7 bits have room: 128 and they, less 128, or 256 where the eighth bit says that the weight is negative.
                const unsigned less = ptx::other_bits_amid<0x00800080>(a[i], 0x43004300);
                a[i] = ptx::bits_amid<0x007f007f>(a[i], 0x43004300);
                ptx::subtract2<type>(a[i], less);
            }
        }
    }
    /// What unpack() takes away: the zero point, and the number amid which the 4 bits are.
    __device__ static unsigned zero_word(unsigned zero) { return (zero | (type == Type::bf16 ? 0x4300u : 0x6400u)) * 0x10001u; }
    /// A scale, or a zero point that is no whole number.
    __device__ static float number_at(unsigned shared) { return ptx::widened<layout.scale>(ptx::load_shared_half(shared)); }
};

}  // namespace rooftile
