// What must not have changed: guards and padding around a tensor, every bit of an input; and whether outputs are equal.
#pragma once

#include "kernels/measure/arguments.hpp"

namespace rooftile {

/// Counts bytes that are not `poison` in the `guard` bytes before and after a tensor, between its lines and between its blocks of
/// them; the last one has nothing behind it. Adds to `*touched`.
__global__ void check_guard(const unsigned char* data, TensorLayout layout, long long guard, unsigned char poison,
                            unsigned long long* touched) {
    const long long padding = layout.pitch_bytes - layout.line_bytes;
    const long long of_lines = padding * (layout.lines - 1), of_a_block = layout.block_pitch_bytes - layout.block_bytes();
    const long long gaps = of_lines * layout.blocks, between = gaps + of_a_block * (layout.blocks - 1);
    const long long all = 2 * guard + between;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        long long at;
        if (i < gaps) {
            const long long block = i / of_lines, within = i - block * of_lines, line = within / padding;
            at = block * layout.block_pitch_bytes + line * layout.pitch_bytes + layout.line_bytes + (within - line * padding);
        } else if (i < between) {
            const long long block = (i - gaps) / of_a_block;
            at = block * layout.block_pitch_bytes + layout.block_bytes() + (i - gaps - block * of_a_block);
        } else {
            const long long g = i - between;
            at = g < guard ? g - guard : layout.bytes() + (g - guard);
        }
        mine += data[at] != poison;
    }
    if (mine) atomicAdd(touched, mine);
}

/// A mix of a word and its index. Odd multipliers and shifts spread every input bit over the high half, which is folded
/// back.
__device__ inline unsigned long long mixed(unsigned word, unsigned long long index) {
    unsigned long long x = (static_cast<unsigned long long>(word) + 1) * 0x9E3779B97F4A7C15ull;
    x ^= index * 0xD6E8FEB86659FD93ull;
    x = (x ^ (x >> 32)) * 0xA0761D6478BD642Full;
    return x ^ (x >> 29);
}

__device__ inline void add_of_warp(unsigned long long mine, unsigned long long* sum) {
    for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

/// Adds up a mix of every 32-bit word and its index: equal memory gives equal sums in any order of
/// threads. `words` counts whole words; callers allocate multiples of four bytes.
__global__ void checksum(const unsigned* data, long long words, unsigned long long* sum) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step)
        mine += mixed(data[i], static_cast<unsigned long long>(i));
    add_of_warp(mine, sum);
}

/// The same of one tensor of every set, blockIdx.y: `words` at each `pitch` words, added to `sums[set]`. `place` tells
/// tensors apart.
__global__ void fingerprint(const unsigned* data, long long words, unsigned long long place, long long pitch,
                            unsigned long long* sums) {
    const unsigned* of_set = data + blockIdx.y * pitch;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned long long mine = 0;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step)
        mine += mixed(of_set[i], static_cast<unsigned long long>(i) + (place << 48));
    add_of_warp(mine, sums + blockIdx.y);
}

/// Adds to `*unequal` how many of `count` sums are not `expected`, and zeroes them.
__global__ void count_unequal(unsigned long long* sums, int count, unsigned long long expected,
                              unsigned long long* unequal) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    if (sums[i] != expected) atomicAdd(unequal, 1ull);
    sums[i] = 0;
}

/// Writes one element of `bytes`, 1 or 2: an injected NaN, Inf or large number.
__global__ void inject(void* at, unsigned short bits, int bytes) {
    if (bytes == 1) *static_cast<unsigned char*>(at) = static_cast<unsigned char>(bits);
    else *static_cast<unsigned short*>(at) = bits;
}

}  // namespace rooftile
