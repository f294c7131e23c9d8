// From the rows of the product that makes queries, keys and values to what comes next: queries and keys are turned by their token's
// position, keys and values go to that position of the cache.
//
// A head's vector is the work of a few neighbouring lanes. A lane holds two runs of 8 elements that are rotated / 2 apart, so that both
// numbers of a pair are its own, and each is one access of 16 bytes. Where a head has elements that are not turned, the last lanes copy
// them. Everything between the two roundings is fp32.
#pragma once

#include "kernels/layer/rotary_append_config.hpp"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <Type type>
__device__ __forceinline__ void load_run(const void* from, float (&to)[RotaryConfig::vector]) {
    const uint4 words = *static_cast<const uint4*>(from);
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = ptx::widen<type>(word[i] & 0xffffu);
        to[2 * i + 1] = ptx::widen_upper<type>(word[i]);
    }
}

template <Type type>
__device__ __forceinline__ void store_run(void* to, const float (&from)[RotaryConfig::vector]) {
    unsigned word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned low = ptx::narrow<type>(from[2 * i]), high = ptx::narrow<type>(from[2 * i + 1]);
        word[i] = low | high << 16;
    }
    *static_cast<uint4*>(to) = make_uint4(word[0], word[1], word[2], word[3]);
}

/// Where a sequence's key at `position` is, in elements from the first one.
template <RotaryConfig C>
__device__ __forceinline__ long long place_in_cache(const RotaryArguments& a, int sequence, int position, int head) {
    const long long of_head = head * a.head_stride;
    if constexpr (C.paged) {
        const int page = a.block_table[static_cast<long long>(sequence) * a.table_pages + position / a.page];
        return page * a.sequence_stride + of_head + position % a.page * a.row_stride;
    } else {
        return sequence * a.sequence_stride + of_head + position * a.row_stride;
    }
}

template <RotaryConfig C>
__global__ void __launch_bounds__(RotaryConfig::threads) rotary_append(const __grid_constant__ RotaryArguments a) {
    static_assert(C.dim % 16 == 0 && C.dim <= 512, "a lane has two runs of 8 elements, a head one warp at most");
    static_assert(C.rotated % 16 == 0 && C.rotated <= C.dim, "both numbers of 8 pairs are one lane's");
    constexpr int vector = C.vector, half = C.rotated / 2, bytes = bytes_of(C.type);
    // Both do nothing in a plain launch; before the wait nothing is read that another kernel may have written.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();

    const int lane = static_cast<int>(threadIdx.x) % C.lanes();
    const long long item = static_cast<long long>(blockIdx.x) * C.heads_of_cta() + static_cast<int>(threadIdx.x) / C.lanes();
    const int of_token = a.heads + 2 * a.kv_heads;
    const int token = static_cast<int>(item / of_token), head = static_cast<int>(item % of_token);
    const bool is_query = head < a.heads, is_value = head >= a.heads + a.kv_heads;
    const int sequence = token / a.tokens_of_sequence;
    bool busy = token < a.tokens && lane < C.busy_lanes();
    int position = 0;
    if (busy) {
        position = a.lengths[sequence] - a.tokens_of_sequence + token % a.tokens_of_sequence;
        // Lengths are data: one that leaves a token no place must not write into another's.
        busy = position >= 0 && position < a.positions;
    }

    const bool turned = lane < half / vector;
    const int first = turned ? lane * vector : C.rotated + (lane - half / vector) * 2 * vector;
    const int second = turned ? first + half : first + vector;
    float x[vector] = {}, y[vector] = {};
    if (busy) {
        const char* from = static_cast<const char*>(a.rows) + item * C.dim * bytes;
        load_run<C.type>(from + first * bytes, x);
        load_run<C.type>(from + second * bytes, y);
    }
    if constexpr (C.normed) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < vector; ++i) squares += x[i] * x[i] + y[i] * y[i];
#pragma unroll
        for (int apart = C.lanes() / 2; apart > 0; apart /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, apart);
        if (busy && !is_value) {
            const float scale = rsqrtf(squares * (1.0f / C.dim) + a.eps);
            const char* weights = static_cast<const char*>(is_query ? a.q_weight : a.k_weight);
            float of_x[vector], of_y[vector];
            load_run<C.type>(weights + first * bytes, of_x);
            load_run<C.type>(weights + second * bytes, of_y);
#pragma unroll
            for (int i = 0; i < vector; ++i) x[i] *= scale * of_x[i], y[i] *= scale * of_y[i];
        }
    }
    if (!busy) return;
    if (turned && !is_value) {
        const float4* turns = reinterpret_cast<const float4*>(a.turns + (static_cast<long long>(position) * half + first) * 2);
#pragma unroll
        for (int i = 0; i < vector; i += 2) {
            const float4 two = turns[i / 2];
            const float x0 = x[i], x1 = x[i + 1];
            x[i] = x0 * two.x - y[i] * two.y;
            y[i] = y[i] * two.x + x0 * two.y;
            x[i + 1] = x1 * two.z - y[i + 1] * two.w;
            y[i + 1] = y[i + 1] * two.z + x1 * two.w;
        }
    }
    char* to;
    if (is_query) {
        to = static_cast<char*>(a.q) + (static_cast<long long>(token) * a.heads + head) * C.dim * bytes;
    } else {
        const int of_kind = head - a.heads - (is_value ? a.kv_heads : 0);
        to = static_cast<char*>(is_value ? a.v : a.k) + place_in_cache<C>(a, sequence, position, of_kind) * bytes;
    }
    store_run<C.type>(to + first * bytes, x);
    store_run<C.type>(to + second * bytes, y);
}

}  // namespace rooftile
