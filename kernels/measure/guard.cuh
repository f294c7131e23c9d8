// What must not have changed: fences and padding around an output, every bit of an input.
#pragma once

#include "kernels/measure/arguments.hpp"

namespace rooftile {

/// Bits of untouched memory: a NaN in bf16 and in fp16.
constexpr unsigned short poison = 0xffff;

/// Counts elements that are not poison in the `fence` elements before and after the matrix and in the
/// padding of its lines; the last line has no padding. One set. Adds to `*touched`.
__global__ void check_fence(MatrixView view, long long fence, unsigned long long* touched) {
    const long long padding = view.leading - view.width;
    const long long gaps = padding * (view.lines - 1);
    const long long size = view.leading * (view.lines - 1) + view.width;
    const long long all = 2 * fence + gaps;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        long long at;
        if (i < gaps) {
            const long long line = i / padding;
            at = line * view.leading + view.width + (i - line * padding);
        } else {
            const long long f = i - gaps;
            at = f < fence ? f - fence : size + (f - fence);
        }
        mine += view.data[at] != poison;
    }
    if (mine) atomicAdd(touched, mine);
}

/// Adds up a mix of every 32-bit word and its index: equal memory gives equal sums in any order of
/// threads. `words` counts whole words; callers allocate multiples of four bytes.
__global__ void checksum(const unsigned* data, long long words, unsigned long long* sum) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
        // Odd multipliers and shifts spread every input bit over the high half, which is folded back.
        unsigned long long x = (static_cast<unsigned long long>(data[i]) + 1) * 0x9E3779B97F4A7C15ull;
        x ^= static_cast<unsigned long long>(i) * 0xD6E8FEB86659FD93ull;
        x = (x ^ (x >> 32)) * 0xA0761D6478BD642Full;
        mine += x ^ (x >> 29);
    }
    for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

/// Writes one element: an injected NaN, Inf or large number.
__global__ void inject(unsigned short* at, unsigned short bits) { *at = bits; }

}  // namespace rooftile
