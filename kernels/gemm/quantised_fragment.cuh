// Packed weights on their way from shared memory to the matrix instruction's first operand: numbers of 16 bits, exact but for those of a table
// that has more digits. A policy for each kind of weight; what is common to all is in QuantisedFragment.
//
// mma.sync m16n8k16 and a warp of wgmma m64nNk16 take that operand alike. Shifts, masks and byte permutes are issued at half the rate of an FMA, so
// that a policy with fewer of them is faster at the same count.
#pragma once

#include "kernels/gemm/weight_values.hpp"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/few_bits.cuh"

namespace rooftile {

/// Whole numbers of 4 or 8 bits less their zero points.
///
/// The lowest 8 bits of a bf16, or 11 of an fp16, are a whole number of the type's smallest unit, denormal or not. So bits that a mask has left
/// at one end or in the middle of these are numbers already: one FMA brings them all to the same unit, far from denormals, and takes the zero point
/// away. Shifts are for what is above.
template <Type type, QuantisedLayout layout>
struct WholeWeights {
    static constexpr bool brain = type == Type::bf16;
    /// Fragments hold weights over this power of two, scales are multiplied by it: 2^-133 of a bf16's last bit, or 2^-24, times the largest power
    /// that the type has, 2^127 or 2^15.
    static constexpr float unit = brain ? 64 : 512;
    static constexpr unsigned largest = brain ? 0x7f007f00 : 0x78007800, sixteenth = brain ? 0x7d007d00 : 0x68006800;

    /// Four fragments' words of 16-bit numbers less their zero points, which zero_word() has made: the `step`th 16 of K of what one load brought.
    __device__ static void unpack(unsigned (&a)[4], const unsigned (&packed)[4], int step, const unsigned (&zero)[2], unsigned) {
        if constexpr (layout.bits() == 4) of_four(a, packed[step], zero);
        else of_eight(a, packed[step * 2], packed[step * 2 + 1]);
    }
    __device__ static void of_four(unsigned (&a)[4], unsigned packed, const unsigned (&zero)[2]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned word = packed >> i / 2 * 8 & (i % 2 == 0 ? 0x000f000f : 0x00f000f0);
            a[i] = ptx::fma2<type>(word, i % 2 == 0 ? largest : sixteenth, zero[i % 2]);
        }
    }
    /// The same of two words of 8 bits, 128 added to each weight.
    __device__ static void of_eight(unsigned (&a)[4], unsigned low, unsigned high) {
        constexpr unsigned less = brain ? 0xc000c000 : 0xb400b400;  // 128 units
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = ptx::fma2<type>(__byte_perm(i < 2 ? low : high, 0, i % 2 == 0 ? 0x4140 : 0x4342), largest, less);
    }
    /// What unpack() adds where there are no zero points: 8 units below zero, or nothing.
    static constexpr unsigned no_zero = layout.bias() == 0 ? 0 : brain ? 0xbe00be00 : 0xa400a400;
    /// And where there are: as many units as the zero point, below zero.
    __device__ static unsigned zero_word(unsigned zero) { return ptx::fma2<type>(zero * 0x10001u, largest ^ 0x80008000, 0); }
    __device__ static void fill_table(unsigned, int, int) {}
};

/// Floats of 8 bits. Their exponent is put on the lower end of the wider type's, which makes any of them, denormal ones too, a number off by the power
/// of two between the biases. A bf16 is multiplied by it at once, since it may be denormal there and products would lose digits; of an fp16 products
/// have them all, and the scale has the power.
template <Type type, QuantisedLayout layout>
struct FloatWeights {
    static constexpr bool brain = type == Type::bf16;
    static constexpr FloatFormat narrow = float_format(float_type(layout.weights));
    static constexpr int down = narrow.fraction_bits + (brain ? 1 : -2);  ///< of the upper byte's exponent and fraction
    static constexpr int power = float_format(type).bias - narrow.bias;
    static constexpr float unit = brain ? 1.0f : static_cast<float>(1 << power % 32);
    static constexpr unsigned no_zero = 0;

    __device__ static void unpack(unsigned (&a)[4], const unsigned (&packed)[4], int step, const unsigned (&)[2], unsigned) {
        constexpr unsigned powers = (power + float_format(type).bias) * 0x800080u, nothing = 0x80008000;  // -0, so that signs of 0 stay
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned word = packed[step * 2 + i / 2], upper = i % 2 == 0 ? __byte_perm(word, 0, 0x2404) : word;
            a[i] = placed(upper, i % 2 == 0);
            if constexpr (brain) a[i] = ptx::fma2<type>(a[i], powers, nothing);
        }
    }
    /// The upper byte of each half as a number of 16 bits; `alone`: the lower one is 0.
    __device__ static unsigned placed(unsigned halves, bool alone) {
        constexpr unsigned sign = 0x80008000, number = (0x7f00u >> down) * 0x10001;
        if constexpr (down > 0) return (halves & sign) | (halves >> down & number);
        return alone ? halves : halves & (sign | number);
    }
    __device__ static unsigned zero_word(unsigned) { return 0; }
    __device__ static void fill_table(unsigned, int, int) {}
};

/// Places in a table of 16 numbers, whatever these are: shared memory has every pair of them, for each lane in a bank of its own, so that a load gives
/// two neighbours along K. As compiled for 8 weights: this is 12 instructions, lookups of bytes by PRMT, two for each half of 16 bits, are 24.
template <Type type, QuantisedLayout layout>
struct TableWeights {
    static constexpr float unit = 1;
    static constexpr unsigned no_zero = 0;
    static constexpr int pairs = 256, lanes = 32, entry_bytes = lanes * 4;
    static_assert(layout.table_bytes() == pairs * entry_bytes);

    /// `table`: where fill_table() has put it.
    __device__ static void unpack(unsigned (&a)[4], const unsigned (&packed)[4], int step, const unsigned (&)[2], unsigned table) {
        constexpr unsigned entries = (pairs - 1) * entry_bytes;
        const unsigned lane = threadIdx.x % lanes * 4, word = packed[step];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned pair = i == 0 ? word << 7 : word >> (i * 8 - 7);
            a[i] = ptx::load_shared_word(table + ((pair & entries) | lane));
        }
    }

    struct Bits {
        unsigned of[16];
        constexpr Bits() : of() {
            for (unsigned i = 0; i < 16; ++i) of[i] = round_to_bits(table_number(layout.weights, i), type);
        }
    };
    /// Each is a constant of its own: nvcc has none of a class on the device.
    template <unsigned at = 0>
    __device__ static unsigned bits_of(unsigned place) {
        constexpr unsigned own = Bits().of[at];
        if constexpr (at == 15) return own;
        else return place == at ? own : bits_of<at + 1>(place);
    }
    /// By `threads`, of which this is the `thread`th; all of them must meet before any of them unpacks.
    __device__ static void fill_table(unsigned table, int thread, int threads) {
        for (int pair = thread; pair < pairs; pair += threads) {
            const float both = __uint_as_float(bits_of(pair % 16) | bits_of(pair / 16) << 16), four[4] = {both, both, both, both};
#pragma unroll
            for (int i = 0; i < entry_bytes / 16; ++i)  // neighbours begin in different banks
                ptx::store_shared_4(table + pair * entry_bytes + (i + thread) % (entry_bytes / 16) * 16, four);
        }
    }
};

template <Type type, QuantisedLayout layout>
constexpr auto weights_policy() {
    if constexpr (layout.is_table()) return TableWeights<type, layout>{};
    else if constexpr (layout.is_float()) return FloatWeights<type, layout>{};
    else return WholeWeights<type, layout>{};
}

template <Type type, QuantisedLayout layout>
struct QuantisedFragment : decltype(weights_policy<type, layout>()) {
    using Weights = decltype(weights_policy<type, layout>());

    /// A zero point that is no whole number, or a scale.
    __device__ static float number_at(unsigned shared) { return ptx::widened<layout.scale>(ptx::load_shared_half(shared)); }
    /// A scale of what unpack() gives.
    __device__ static float scale_at(unsigned shared) {
        if constexpr (layout.power_scales()) return __uint_as_float(ptx::load_shared_byte(shared) << 23) * Weights::unit;
        else return number_at(shared) * Weights::unit;
    }
};

}  // namespace rooftile
