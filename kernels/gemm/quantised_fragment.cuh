// Packed weights on their way from shared memory to the matrix instruction's first operand: whole numbers less their zero points, exact in
// 16 bits. mma.sync m16n8k16 and a warp of wgmma m64nNk16 take that operand alike.
//
// The lowest 8 bits of a bf16, or 11 of an fp16, are a whole number of the type's smallest unit, denormal or not. So bits that a mask has left
// at one end or in the middle of these are numbers already: one FMA brings them all to the same unit, far from denormals, and takes the zero point
// away. Shifts are for what is above; and shifts, like masks, are issued at half the rate of an FMA.
#pragma once

#include "kernels/gemm/quantised_weights.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/few_bits.cuh"

namespace rooftile {

template <Type type, QuantisedLayout layout>
struct QuantisedFragment {
    static constexpr bool brain = type == Type::bf16;
    /// Fragments hold weights over this power of two, scales are multiplied by it: 2^-133 of a bf16's last bit, or 2^-24, times the largest power
    /// that the type has, 2^127 or 2^15.
    static constexpr float unit = brain ? 64 : 512;
    static constexpr unsigned largest = brain ? 0x7f007f00 : 0x78007800, sixteenth = brain ? 0x7d007d00 : 0x68006800;

    /// Four fragments' words of 16-bit numbers less their zero points, which zero_word() has made.
    __device__ static void unpack(unsigned (&a)[4], unsigned packed, const unsigned (&zero)[2]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned word = packed >> i / 2 * 8 & (i % 2 == 0 ? 0x000f000f : 0x00f000f0);
            a[i] = ptx::fma2<type>(word, i % 2 == 0 ? largest : sixteenth, zero[i % 2]);
        }
    }
    /// The same of two words of 8 bits, 128 added to each weight.
    __device__ static void unpack(unsigned (&a)[4], unsigned low, unsigned high) {
        constexpr unsigned less = brain ? 0xc000c000 : 0xb400b400;  // 128 units
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = ptx::fma2<type>(__byte_perm(i < 2 ? low : high, 0, i % 2 == 0 ? 0x4140 : 0x4342), largest, less);
    }
    /// What unpack() adds where there are no zero points: 8 units below zero, or nothing.
    static constexpr unsigned no_zero = layout.bias() == 0 ? 0 : brain ? 0xbe00be00 : 0xa400a400;
    /// And where there are: as many units as the zero point, below zero.
    __device__ static unsigned zero_word(unsigned zero) { return ptx::fma2<type>(zero * 0x10001u, largest ^ 0x80008000, 0); }
    /// A zero point that is no whole number, or a scale.
    __device__ static float number_at(unsigned shared) { return ptx::widened<layout.scale>(ptx::load_shared_half(shared)); }
    /// A scale of what unpack() gives.
    __device__ static float scale_at(unsigned shared) { return number_at(shared) * unit; }
};

}  // namespace rooftile
