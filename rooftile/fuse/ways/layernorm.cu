// A CTA takes one row and reads it three times: for the mean, for the variance, and to write.
#include <cuda_bf16.h>

constexpr int threads = 256;

__device__ float summed(float v) {
    __shared__ float shared[threads];
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void layernorm(__nv_bfloat16* y, const __nv_bfloat16* x, const __nv_bfloat16* gamma, const __nv_bfloat16* beta,
                                     int columns, float epsilon) {
    x += blockIdx.x * (long long)columns;
    y += blockIdx.x * (long long)columns;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += threads) sum += __bfloat162float(x[i]);
    const float mean = summed(sum) / columns;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += threads) {
        const float d = __bfloat162float(x[i]) - mean;
        squares += d * d;
    }
    const float scale = rsqrtf(summed(squares) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += threads)
        y[i] = __float2bfloat16((__bfloat162float(x[i]) - mean) * scale * __bfloat162float(gamma[i]) + __bfloat162float(beta[i]));
}
