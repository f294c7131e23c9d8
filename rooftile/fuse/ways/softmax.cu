// A CTA takes one row and reads it three times: for the largest, for the sum, and to write. What of a row is still in
// L1 and L2 comes from there.
#include <cuda_bf16.h>

constexpr int threads = 256;

__device__ float reduced(float v, bool largest) {
    __shared__ float shared[threads];
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = shared[threadIdx.x + half];
            shared[threadIdx.x] = largest ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void softmax(__nv_bfloat16* y, const __nv_bfloat16* x, int columns) {
    x += blockIdx.x * (long long)columns;
    y += blockIdx.x * (long long)columns;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += threads) most = fmaxf(most, __bfloat162float(x[i]));
    most = reduced(most, true);
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += threads) sum += __expf(__bfloat162float(x[i]) - most);
    sum = reduced(sum, false);
    for (int i = threadIdx.x; i < columns; i += threads) y[i] = __float2bfloat16(__expf(__bfloat162float(x[i]) - most) / sum);
}
