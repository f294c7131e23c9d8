// Warpgroups that compute elements beside warpgroups that multiply, one CTA an SM: what either takes of the other. Compiled by
// issue_beside_products.py, a kernel a function (FUNCTION).
#include "kernels/expression/math.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/wgmma_registers.cuh"

using namespace rooftile;

enum : int { gelu, gelu_of_registers, fma_of_registers, fma_of_immediates, relu, silu, exponential, addition };

constexpr int elements = 32, products_a_round = 8;

/// `c`: constants in registers.
__device__ __forceinline__ float element(float x, const float* c) {
    float q = x;
    if constexpr (FUNCTION == gelu) return expression::gelu_16<Type::bf16>(x);
    if constexpr (FUNCTION == gelu_of_registers) {
        const float a = fabsf(x);
        q = c[0];
        for (int i = 1; i < 8; ++i) q = fmaf(a, q, c[i]);
        return x * fabsf(ptx::product_within_1(x, c[8]) - ptx::exp2_approx(q));
    }
    if constexpr (FUNCTION == fma_of_registers) {
        for (int i = 0; i < 8; ++i) q = fmaf(x, q, c[i]);
        return q;
    }
    if constexpr (FUNCTION == fma_of_immediates) {
        constexpr float constants[] = {0.11f, -0.2f, 0.31f, -0.42f, 0.53f, -0.64f, 0.75f, -0.86f};
        for (int i = 0; i < 8; ++i) q = fmaf(x, q, constants[i]);
        return q;
    }
    if constexpr (FUNCTION == relu) return expression::relu(x);
    if constexpr (FUNCTION == silu) return expression::silu(x);
    if constexpr (FUNCTION == exponential) return ptx::exp2_approx(x);
    for (int i = 0; i < 8; ++i) q += c[i];
    return q;
}

/// 64 x 128 x 16, the first operand in shared memory or in registers.
template <bool of_registers>
__device__ __forceinline__ void multiply(int rounds, unsigned base, float* out) {
    float sums[64];
    for (float& sum : sums) sum = 0;
    const unsigned a[4] = {threadIdx.x, 1, 2, 3};
    for (int r = 0; r < rounds; ++r) {
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < products_a_round; ++k) {
            const auto desc_a = ptx::matrix_descriptor(base + threadIdx.x / 128 * 16384 + k % 4 * 32, 16, 1024),
                       desc_b = ptx::matrix_descriptor(base + 65536 + k % 4 * 32, 16, 1024);
            if constexpr (of_registers) ptx::wgmma_registers<128, Type::bf16, Major::k>(sums, a, desc_b, 1);
            else ptx::wgmma<128, Type::bf16, Type::bf16, Major::k, Major::k>(sums, desc_a, desc_b, 1);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
#pragma unroll
        for (float& sum : sums) ptx::wgmma_pin(sum);
    }
    for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = sums[i];
}

/// cycles[w]: of warpgroup w of one CTA. The first `computing` warpgroups compute, the others multiply.
extern "C" __global__ void __launch_bounds__(384, 1)
    beside(int computing, int of_registers, int rounds, int product_rounds, float* out, const float* in, long long* cycles) {
    extern __shared__ __align__(1024) unsigned char memory[];
    for (unsigned i = threadIdx.x; i < 131072 / 4; i += blockDim.x) reinterpret_cast<float*>(memory)[i] = 0;
    asm volatile("fence.proxy.async;");
    const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
    __syncthreads();
    long long time = clock64();
    if (warpgroup < computing) {
        float c[9], x[elements], sum = 0;
        for (int i = 0; i < 9; ++i) c[i] = in[i];
        for (int i = 0; i < elements; ++i) x[i] = in[9 + i + threadIdx.x % 32];
        for (int r = 0; r < rounds; ++r) {
#pragma unroll
            for (float& value : x) value = element(value, c);
#pragma unroll
            for (float& value : x) asm volatile("" : "+f"(value));
        }
        for (const float value : x) sum += value;
        out[threadIdx.x] = sum;
    } else if (of_registers) multiply<true>(product_rounds, ptx::shared_address(memory), out + 1024);
    else multiply<false>(product_rounds, ptx::shared_address(memory), out + 1024);
    time = clock64() - time;
    if (blockIdx.x == 3 && threadIdx.x % 128 == 0) cycles[warpgroup] = time;
}
