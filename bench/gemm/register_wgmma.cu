// How long is a wgmma whose first operand is in registers, by its columns and by how many warpgroups issue them? Cycles an instruction of an
// SM, beside the matrix units' own n / 2. Eight are a group; `unpacked`: between groups a thread does as many other instructions as it takes to
// unpack 4 bits, on values that the next group takes.
//
// nvcc -std=c++20 -gencode arch=compute_90a,code=sm_90a -I. -o register_wgmma bench/gemm/register_wgmma.cu && ./register_wgmma
#include <cstdio>

#include "kernels/matrix/fragment_products.cuh"
#include "kernels/ptx/few_bits.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/sync.cuh"

using namespace rooftile;

template <int n, bool unpacked>
__global__ void __launch_bounds__(n > 128 ? 256 : 512, 1) issue(long long* cycles, float* out, unsigned seed) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned shared = ptx::shared_address(memory);
    for (unsigned i = threadIdx.x; i < n * 128 / 4; i += blockDim.x) reinterpret_cast<unsigned*>(memory)[i] = 0x3f803f80;
    ptx::fence_async_proxy();
    __syncthreads();
    float sums[n / 2] = {};
    unsigned a[2][4][4];
    for (int b = 0; b < 2; ++b)
        for (int s = 0; s < 4; ++s)
            for (int e = 0; e < 4; ++e) a[b][s][e] = 0x3f803f80 ^ (seed & threadIdx.x);
    constexpr int rounds = 256;
    const long long begin = clock64();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int b = 0; b < 2; ++b) {
            multiply_fragments<n, Type::bf16>(sums, a[b], shared, false);
            ptx::wgmma_wait<1>();  // the group before has read its fragments
            if constexpr (unpacked)
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    const unsigned word = a[1 - b][s][0] + round;
#pragma unroll
                    for (int e = 0; e < 4; ++e) a[1 - b][s][e] = ptx::fma2<Type::bf16>(word >> e / 2 * 8 & (e % 2 == 0 ? 0x000f000f : 0x00f000f0), 0x7f007f00, seed);
                }
        }
    }
    ptx::wgmma_wait<0>();
    for (int i = 0; i < n / 2; ++i) ptx::wgmma_pin(sums[i]);
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) *cycles = clock64() - begin;
    float all = 0;
    for (int i = 0; i < n / 2; ++i) all += sums[i];
    if (all == 1.25f) *out = all;
}

template <int n, bool unpacked>
void row() {
    static long long* cycles;
    static float* out;
    if (!cycles) cudaMallocManaged(&cycles, 8), cudaMalloc(&out, 4);
    std::printf("n %3d%s", n, unpacked ? ", unpacked" : "          ");
    for (const int warpgroups : {1, 2, 3, 4}) {
        if (warpgroups * 128 * (n / 2 + 60) > 65536 || (n > 128 && warpgroups > 2)) continue;
        for (int i = 0; i < 2; ++i) issue<n, unpacked><<<132, warpgroups * 128, n * 128>>>(cycles, out, 0);
        if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) std::printf(" %s", cudaGetErrorString(error));
        else std::printf("  %d: %6.1f", warpgroups, double(*cycles) / (256.0 * 8 * warpgroups));
    }
    std::printf("   of %d\n", n / 2);
}

int main() {
    row<32, false>(), row<64, false>(), row<96, false>(), row<128, false>(), row<160, false>(), row<256, false>();
    row<32, true>(), row<64, true>(), row<96, true>(), row<128, true>(), row<160, true>();
}
