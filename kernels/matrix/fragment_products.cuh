// Products of wgmma whose first operand is made in registers, a few steps of K at a time: what packed weights are unpacked for.
#pragma once

#include "kernels/ptx/wgmma_registers.cuh"

namespace rooftile {

/// Issues the products of `steps` fragments by as many times 16 of K of the second operand, K-major in rows of 128 B that are swizzled, `columns`
/// of them; `second` is the shared address of the first 16 within the first row. `anew`: sums begin with it. One committed group.
template <int columns, Type type, int steps>
__device__ inline void multiply_fragments(float* sums, const unsigned (&fragments)[steps][4], unsigned second, bool anew) {
    constexpr int step_bytes = 32, eight_rows = 8 * 128;
    // What was done to sums and fragments stays in front of the fence.
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) ptx::wgmma_pin(sums[i]);
    ptx::wgmma_fence();
    // A descriptor counts addresses in 16 B, and of the next 16 of K is the same but for them.
    const unsigned long long first = ptx::matrix_descriptor(second, 16, eight_rows);
#pragma unroll
    for (int i = 0; i < steps; ++i)
        ptx::wgmma_registers<columns, type, Major::k>(sums, fragments[i], first + i * (step_bytes / 16), !(anew && i == 0));
    ptx::wgmma_commit();
}

}  // namespace rooftile
