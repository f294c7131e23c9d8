// What a thread holds of a wgmma's accumulators: where they lie, as the first operand of the next wgmma, and straight to memory.
#pragma once

#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// Thread t of a warpgroup holds rows t / 32 * 16 + t % 32 / 4 and 8 further, and of each eight columns two, 2 (t % 4) and the next.
struct FragmentPlace {
    int row = static_cast<int>(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4);
    int column = static_cast<int>(threadIdx.x % 4 * 2);
};

/// Values as the first operand of the next product: registers 4 s .. 4 s + 3 are columns 16 s .. 16 s + 15.
template <Type type, int count>
__device__ void narrow_pairs(unsigned (&pairs)[count / 2], const float (&values)[count]) {
#pragma unroll
    for (int i = 0; i < count / 2; ++i) pairs[i] = ptx::pack2<type>(values[2 * i], values[2 * i + 1]);
}

/// What four neighbouring threads have of four groups each: thread i gets all of group i, thread after thread. By swaps of two, as a 4x4
/// matrix is transposed.
__device__ inline void swap_groups(unsigned (&words)[4], int lane4) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        const bool upper = (lane4 & bit) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if ((i & bit) != 0) continue;
            const unsigned got = __shfl_xor_sync(0xffffffff, upper ? words[i] : words[i + bit], bit);
            words[i] = upper ? got : words[i];
            words[i + bit] = upper ? words[i + bit] : got;
        }
    }
}

/// The thread's upper (half 0) or lower row of 16-bit elements, times `by`, to `line`, which has `columns` of them, a multiple of 8. The
/// four threads of a row have two columns of each eight: they swap, so that each stores 16 bytes of one of four such groups. By whole
/// warps; `inside`: whether the row is there.
template <Type type, int count>
__device__ void store_row(const float (&sums)[count], int half, float by, char* line, int columns, bool inside) {
    const int lane4 = static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int first = 0; first < count / 4; first += 4) {
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            words[i] = ptx::pack2<type>(sums[4 * (first + i) + 2 * half] * by, sums[4 * (first + i) + 2 * half + 1] * by);
        swap_groups(words, lane4);
        const int column = (first + lane4) * 8;
        if (inside && column < columns)
            *reinterpret_cast<uint4*>(line + column * 2) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

}  // namespace rooftile
