// The sums of one warpgroup's m64nN and the products that go into them.
#pragma once

#include "kernels/ptx/wgmma.cuh"

namespace rooftile {

template <int n>
using WgmmaSums = float[n / 2];

/// Issues 64 x 64 by 64 x n, described by `a` and `b`; returns when the products issued before are done.
/// `fresh` starts the sums anew.
template <int n>
__device__ void multiply_block(WgmmaSums<n>& d, unsigned long long a, unsigned long long b, bool fresh) {
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)  // 16 of k are 32 bytes, 2 in a descriptor's units
        ptx::wgmma<n, Type::bf16, Type::bf16, Major::k, Major::k>(d, a + 2 * k, b + 2 * k, k > 0 || !fresh);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
}

/// Until all products are done.
template <int n>
__device__ void drain(WgmmaSums<n>& d) {
    ptx::wgmma_wait<0>();
#pragma unroll
    for (int j = 0; j < n / 2; ++j) ptx::wgmma_pin(d[j]);
}

template <int n>
__device__ float total(const WgmmaSums<n>& d) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < n / 2; ++j) sum += d[j];
    return sum;
}

}  // namespace rooftile
