// Runs of 8 numbers of 16 bits, as fp32 in registers: an access of 16 bytes.
#pragma once

#include "kernels/ptx/convert.cuh"
#include "kernels/types.hpp"

namespace rooftile {

constexpr int run_elements = 8;

template <Type type>
__device__ __forceinline__ void load_run(const void* from, float (&to)[run_elements]) {
    const uint4 words = *static_cast<const uint4*>(from);
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = ptx::widen<type>(word[i] & 0xffffu);
        to[2 * i + 1] = ptx::widen_upper<type>(word[i]);
    }
}

template <Type type>
__device__ __forceinline__ void store_run(void* to, const float (&from)[run_elements]) {
    unsigned word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned low = ptx::narrow<type>(from[2 * i]), high = ptx::narrow<type>(from[2 * i + 1]);
        word[i] = low | high << 16;
    }
    *static_cast<uint4*>(to) = make_uint4(word[0], word[1], word[2], word[3]);
}

}  // namespace rooftile
