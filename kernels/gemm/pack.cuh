// Copies operands of a GEMM, line by line, to where TMA can take them: their lines begin on 128-byte lines of L2 and
// are filled up with zeros to whole 16 bytes.
//
// A line may begin at any address, another one in every line. So a thread reads the two aligned 16-byte words in
// which its vector lies and shifts them together: reads are as wide as stores whatever the alignment, and the word that
// two neighbours share comes from L1. Where such a word reaches beyond the tensor (at its first bytes and its last), the
// vector is read byte by byte.
//
// Vectors are numbered through all lines, and a CTA takes 1024 consecutive ones: a part of a long line, or many short lines.
#pragma once

#include "kernels/gemm/pack_arguments.hpp"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

using PackVector = ptx::Words<16>;

/// The 16 bytes that begin `bytes` (below 16) behind the start of `low`; `high` follows it.
__device__ inline PackVector shifted_together(const PackVector& low, const PackVector& high, unsigned bytes) {
    unsigned w[8] = {low.word[0],  low.word[1],  low.word[2],  low.word[3],
                     high.word[0], high.word[1], high.word[2], high.word[3]};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = bytes & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = bytes & 4 ? w[i + 1] : w[i];
    PackVector out;
#pragma unroll
    for (int i = 0; i < 4; ++i) out.word[i] = __funnelshift_r(w[i], w[i + 1], 8 * (bytes & 3));
    return out;
}

/// Its first `valid` bytes, zeros behind them.
__device__ inline void keep_first(PackVector& vector, int valid) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int left = valid - 4 * i;
        vector.word[i] = left >= 4 ? vector.word[i] : left > 0 ? vector.word[i] & ((1u << 8 * left) - 1) : 0;
    }
}

/// `valid` bytes, one by one, zeros behind them.
__device__ inline PackVector by_bytes(const unsigned char* from, int valid) {
    PackVector out{};
#pragma unroll
    for (int i = 0; i < pack_vector_bytes; ++i)
        if (i < valid) out.word[i / 4] |= unsigned(from[i]) << i % 4 * 8;
    return out;
}

/// The vectors of CTA number `cta` of one matrix.
__device__ inline void pack_lines(const PackedLines& lines, long long cta) {
    const unsigned vectors = lines.vectors();
    const long long first = cta * pack_vectors_per_cta;
    const long long first_line = first / vectors;
    const unsigned first_vector = unsigned(first - first_line * vectors) + threadIdx.x;
    const auto begin = reinterpret_cast<unsigned long long>(lines.from);
    const auto end = reinterpret_cast<unsigned long long>(lines.from + (lines.lines - 1) * lines.leading + lines.width);

    const unsigned char* from[pack_vectors_per_thread];
    unsigned char* to[pack_vectors_per_thread];  // null: behind the last line
    int valid[pack_vectors_per_thread];          // bytes that the line has from there
    bool whole[pack_vectors_per_thread];         // its words lie within the tensor
    PackVector low[pack_vectors_per_thread], high[pack_vectors_per_thread];
#pragma unroll
    for (int i = 0; i < pack_vectors_per_thread; ++i) {
        const unsigned number = first_vector + i * pack_threads, further = number / vectors;
        const long long line = first_line + further;
        const unsigned column = (number - further * vectors) * pack_vector_bytes;
        const bool exists = line < lines.lines;
        from[i] = lines.from + line * lines.leading + column;
        to[i] = exists ? lines.to + line * lines.pitch + column : nullptr;
        valid[i] = lines.width - column < pack_vector_bytes ? int(lines.width - column) : pack_vector_bytes;
        const auto address = reinterpret_cast<unsigned long long>(from[i]);
        const unsigned long long word = address / pack_vector_bytes * pack_vector_bytes;
        const bool two = word != address;
        whole[i] = exists && word >= begin && word + (two ? 2 : 1) * pack_vector_bytes <= end;
        if (!whole[i]) continue;
        ptx::load_words(low[i], reinterpret_cast<const void*>(word));
        if (two) ptx::load_words(high[i], reinterpret_cast<const void*>(word + pack_vector_bytes));
    }
#pragma unroll
    for (int i = 0; i < pack_vectors_per_thread; ++i) {
        if (!to[i]) continue;
        PackVector vector;
        if (whole[i]) {
            vector = shifted_together(low[i], high[i], unsigned(reinterpret_cast<unsigned long long>(from[i])) % pack_vector_bytes);
            if (valid[i] < pack_vector_bytes) keep_first(vector, valid[i]);
        } else {
            vector = by_bytes(from[i], valid[i]);
        }
        ptx::store_words(to[i], vector);
    }
}

/// The same of a batch of matrices, one after the other along the grid's y.
__device__ inline void pack_matrices(const PackedLines& of, long long cta) {
    for (unsigned matrix = blockIdx.y; matrix < of.matrices; matrix += gridDim.y) {
        PackedLines lines = of;
        lines.from += matrix * lines.stride;
        lines.to += matrix * lines.packed_stride;
        pack_lines(lines, cta);
    }
}

/// What a batch asks for besides costs a CTA an SM: else it spills.
template <bool batched>
__global__ void __launch_bounds__(pack_threads, batched ? 3 : 4) pack_operands(const __grid_constant__ PackArguments args) {
    // The GEMM behind may set itself up meanwhile; it reads the copies when all of this has ended. And the GEMM before may
    // still read the copies before: nothing is touched until it has ended.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const long long a_ctas = args.a.ctas(), cta = blockIdx.x;
    const bool of_a = cta < a_ctas;
    const PackedLines lines = of_a ? args.a : args.b;
    if constexpr (batched) pack_matrices(lines, of_a ? cta : cta - a_ctas);
    else pack_lines(lines, of_a ? cta : cta - a_ctas);
}

}  // namespace rooftile
