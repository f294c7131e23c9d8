// Rows of 8-bit floats to numbers of 16 bits in memory, for a product that reads these: each is one of those, so nothing is rounded, and NaN and
// infinity stay. Lines begin on 128-byte lines of L2 and are filled up with zeros to whole 16 bytes.
//
// Lines may begin anywhere: a thread whose 8 elements begin at a multiple of 8 B loads them at once, others one by one. The exponent is put in its
// place and multiplied by a power of two, which every architecture with fp16 does; conversions of 8 bits begin with sm_89.
#pragma once

#include "kernels/gemm/widen_rows_arguments.hpp"
#include "kernels/ptx/few_bits.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// Two floats of 8 bits, the upper bytes of a word's halves, as numbers of fp16.
template <Type narrow>
__device__ inline unsigned as_halves(unsigned upper) {
    if constexpr (narrow == Type::fp8_e5m2) return upper;  // it is fp16's upper byte
    constexpr unsigned power = 0x5c005c00, nothing = 0x80008000;  // 2^8, between the biases; -0, so that signs of 0 stay
    unsigned halves = ptx::fma2<Type::fp16>((upper & 0x80008000) | (upper >> 1 & 0x3f803f80), power, nothing);
    if ((upper & 0x7f00) == 0x7f00) halves |= 0x7e00;
    if ((upper & 0x7f000000) == 0x7f000000) halves |= 0x7e000000;
    return halves;
}

/// The `pair`th two of a word's four, as numbers of `wide`.
template <Type narrow, Type wide>
__device__ inline unsigned widened_pair(unsigned word, int pair) {
    const unsigned halves = as_halves<narrow>(__byte_perm(word, 0, pair == 0 ? 0x1404 : 0x3424));
    if constexpr (wide == Type::fp16) return halves;
    return ptx::pack2<wide>(ptx::widened<Type::fp16>(static_cast<unsigned short>(halves & 0xffff)),
                            ptx::widened<Type::fp16>(static_cast<unsigned short>(halves >> 16)));
}

/// The vectors of CTA number `cta`.
template <Type narrow, Type wide>
__device__ inline void widen_lines(const WidenedRows& rows, unsigned cta) {
    const unsigned vectors = rows.vectors();
    const long long first = static_cast<long long>(cta) * widen_vectors_per_cta, first_line = first / vectors;
    const unsigned first_vector = static_cast<unsigned>(first - first_line * vectors) + threadIdx.x;
    ptx::Words<8> from[widen_vectors_per_thread];
    unsigned short* to[widen_vectors_per_thread];  // null: behind the last line
#pragma unroll
    for (int i = 0; i < widen_vectors_per_thread; ++i) {
        const unsigned number = first_vector + i * widen_threads, further = number / vectors;
        const long long line = first_line + further;
        const unsigned column = (number - further * vectors) * widen_vector;
        from[i] = {}, to[i] = nullptr;
        if (line >= rows.lines) continue;
        to[i] = rows.to + line * rows.pitch + column;
        const unsigned char* const data = rows.from + line * rows.leading + column;
        if (rows.width - column >= widen_vector && reinterpret_cast<unsigned long long>(data) % widen_vector == 0) {
            ptx::load_words(from[i], data);
            continue;
        }
#pragma unroll
        for (unsigned e = 0; e < widen_vector; ++e)
            if (e < rows.width - column) from[i].word[e / 4] |= static_cast<unsigned>(data[e]) << e % 4 * 8;
    }
#pragma unroll
    for (int i = 0; i < widen_vectors_per_thread; ++i) {
        if (!to[i]) continue;
        ptx::Words<16> out;
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) out.word[pair] = widened_pair<narrow, wide>(from[i].word[pair / 2], pair % 2);
        ptx::store_words(to[i], out);
    }
}

template <Type narrow, Type wide>
__global__ void __launch_bounds__(widen_threads) widen_rows(const __grid_constant__ WidenedRows rows) {
    // As pack_operands: the product before may still read the rows that it had widened.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    widen_lines<narrow, wide>(rows, blockIdx.x);
}

}  // namespace rooftile
