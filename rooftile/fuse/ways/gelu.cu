// A thread takes one element: neighbours of a warp read neighbours in memory.
#include <cuda_bf16.h>

extern "C" __global__ void gelu(__nv_bfloat16* y, const __nv_bfloat16* x, long long count) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float v = __bfloat162float(x[i]);
    y[i] = __float2bfloat16(0.5f * v * (1.0f + erff(v * 0.70710678f)));
}
