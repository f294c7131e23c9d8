// Products of a warpgroup whose operands are both in shared memory, where rows of 64 elements lie in boxes swizzled by 128 B (tensor maps), one box of columns
// after the other. bf16 or fp16 in, fp32 sums, as wgmma.cuh has them. Issued alone: fences, commits and waits are the caller's.
#pragma once

#include "kernels/matrix/back_to_back_shape.hpp"
#include "kernels/ptx/wgmma.cuh"

namespace rooftile {

/// Where box `step / 4`'s k-step is, in a matrix whose rows are along k and whose boxes are `box_bytes` apart.
__device__ constexpr unsigned place_of_step(int step, int box_bytes) {
    constexpr int steps_a_box = BackToBackShape::box_elements / 16, step_bytes = 32;
    return step / steps_a_box * box_bytes + step % steps_a_box * step_bytes;
}

/// d[64 x n] = a[64 x k] b[n x k]^T.
template <int n, int k, Type type>
__device__ void multiply_by_columns(float* d, unsigned a, int a_box_bytes, unsigned b, int b_box_bytes) {
    constexpr int eight_rows = 8 * BackToBackShape::swizzle_bytes;
#pragma unroll
    for (int step = 0; step < k / 16; ++step)
        ptx::wgmma<n, type, type, Major::k, Major::k>(d, ptx::matrix_descriptor(a + place_of_step(step, a_box_bytes), 16, eight_rows),
                                                      ptx::matrix_descriptor(b + place_of_step(step, b_box_bytes), 16, eight_rows), step > 0);
}

/// d[64 x n] += a[64 x k] b[k x n], of which b's rows are along n.
template <int n, int k, Type type>
__device__ void multiply_by_rows(float* d, unsigned a, int a_box_bytes, unsigned b, int b_box_bytes) {
    constexpr int eight_rows = 8 * BackToBackShape::swizzle_bytes;
#pragma unroll
    for (int step = 0; step < k / 16; ++step)
        ptx::wgmma<n, type, type, Major::k, Major::mn>(d, ptx::matrix_descriptor(a + place_of_step(step, a_box_bytes), 16, eight_rows),
                                                       ptx::matrix_descriptor(b + step * 16 * BackToBackShape::swizzle_bytes, b_box_bytes, eight_rows), 1);
}

}  // namespace rooftile
