// Packed weights for the reference: made at random by the layout's own addresses, and unpacked one by one. Shares the layout with the kernel
// that it judges, and no other line.
#pragma once

#include "kernels/gemm/quantised_reference_arguments.hpp"
#include "kernels/gemm/weight_values.hpp"
#include "kernels/measure/philox.hpp"

namespace rooftile {

/// Bits of floats that are all finite, by clearing some; beyond 2^9 none, so that sums are finite too. `exact`: of the least four exponents.
__device__ inline unsigned finite_floats(unsigned word, WeightType weights, bool exact) {
    if (weights == WeightType::fp8_e4m3)
        return exact ? word & 0x9f9f9f9f : word & ~((((word & 0x7f7f7f7f) + 0x01010101) & 0x80808080) >> 7);
    return exact ? word & 0x8f8f8f8f : word & ~(word & (word << 1) & 0x40404040);
}

/// A word of 4 B a thread, grid-stride. What pads N and K is made too: whatever is there must not matter.
__global__ void fill_quantised(QuantisedFill p) {
    const long long words = p.layout.bytes(p.n, p.k) / 4,
                    step = static_cast<long long>(gridDim.x) * blockDim.x;
    constexpr int header_words = QuantisedLayout::header_bytes / 4;
    const auto scale = [&p](const PhiloxBlock& random, int e) {
        const unsigned r = random.word[e];
        const double size = p.exact ? 1 + (r >> 1) % 2 : (1 + (r >> 1) % 128 / 128.0) / 64;
        return r % 2 != 0 ? -size : size;
    };
    const long long block_words = p.layout.block_bytes() / 4, row_words = QuantisedLayout::k_blocks(p.k) * block_words;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
        const long long body = i - header_words;
        const int in = i < header_words ? 0 : static_cast<int>(body % block_words * 4);
        // A row's scale and zero point are the same in all its blocks: those of the first.
        const long long drawn = p.layout.group == 0 && in >= p.layout.weight_bytes() ? i - body % row_words + body % block_words : i;
        const PhiloxBlock random = philox(drawn, 1, p.seed);
        unsigned word = random.word[0];
        if (i < header_words)
            word = i == 0   ? p.layout.fingerprint()
                   : i == 1 ? static_cast<unsigned>(p.n)
                   : i == 2 ? static_cast<unsigned>(p.k)
                            : 0;
        else if (in >= p.layout.zeros_at() && p.layout.zeros == ZeroType::real) {
            // As large as weights before it is taken from them: so many of its group's scale, whole ones in the exact case.
            const PhiloxBlock scales = philox(drawn - (p.layout.zeros_at() - p.layout.weight_bytes()) / 4, 1, p.seed);
            word = 0;
            for (int e = 0; e < 2; ++e) {
                const double of = p.exact ? random.word[e] % 16 : random.word[e] % 4096 / 256.0;
                word |= round_to_bits(of * scale(scales, e), p.layout.scale) << 16 * e;
            }
        } else if (in >= p.layout.zeros_at()) word &= 0x0f0f0f0f;
        else if (in >= p.layout.weight_bytes()) {
            word = 0;
            if (p.layout.power_scales()) {
                const unsigned least = p.exact ? power_bias : power_bias - 6, some = p.exact ? 2 : 4;
                for (int e = 0; e < 4; ++e) word |= (least + random.word[e] % some) << 8 * e;
            } else
                for (int e = 0; e < 2; ++e) word |= round_to_bits(scale(random, e), p.layout.scale) << 16 * e;
        } else if (p.layout.is_float()) word = finite_floats(word, p.layout.weights, p.exact);
        reinterpret_cast<unsigned*>(p.to)[i] = word;
    }
}

/// A weight a thread, grid-stride.
__global__ void dequantise(Dequantise p) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.n * p.k;
         i += step) {
        const long long n = i / p.k, k = i % p.k;
        const int row = static_cast<int>(n % QuantisedLayout::block_rows),
                  column = static_cast<int>(k % QuantisedLayout::block_k);
        const unsigned char* block = p.from + p.layout.block_at(n, k, p.k);
        const unsigned word = reinterpret_cast<const unsigned*>(block)[p.layout.word_of(row, column)];
        const double q = weight_value(p.layout, word >> p.layout.shift_of(row, column) & p.layout.mask(), p.activations);
        const auto half = [&](int at) { return static_cast<unsigned>(*reinterpret_cast<const unsigned short*>(block + at)); };
        const int scale_at = p.layout.scale_at(row, column), zero_at = p.layout.zero_at(row, column);
        const double scale = scale_value(p.layout, p.layout.power_scales() ? block[scale_at] : half(scale_at));
        const double zero = p.layout.zeros == ZeroType::integer ? block[zero_at] : p.layout.bias(),
                     less = p.layout.zeros == ZeroType::real ? value_of_bits(half(zero_at), p.layout.scale) : 0;
        const auto rounded = [](double x, Type to) { return value_of_bits(round_to_bits(x, to), to); };
        const double exact = (q - zero) * scale - less;
        const unsigned bits = round_to_bits(p.rounded ? rounded(rounded(exact, Type::fp32), p.activations) : exact, p.type);
        if (p.type == Type::fp32) static_cast<unsigned*>(p.to)[i] = bits;
        else static_cast<unsigned short*>(p.to)[i] = static_cast<unsigned short>(bits);
    }
}

}  // namespace rooftile
