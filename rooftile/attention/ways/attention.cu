// A CTA takes one query of one head: its scores are kept in shared memory, and read again for the sum and for the means. A warp takes a
// key's score together, so that its threads read neighbours; of the values a thread takes a column.
#include <cuda_bf16.h>

constexpr int threads = 128;

__device__ float reduced(float v, bool largest, float* shared) {
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

extern "C" __global__ void attention(__nv_bfloat16* o, const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                     int tokens, int dim, float scale) {
    extern __shared__ float shared[];  // scores, the query, and room for a reduction
    float *scores = shared, *query = shared + tokens, *room = query + dim;
    const long long head = blockIdx.y * (long long)tokens * dim, own = head + blockIdx.x * (long long)dim;
    for (int i = threadIdx.x; i < dim; i += threads) query[i] = __bfloat162float(q[own + i]) * scale;
    __syncthreads();
    for (int key = threadIdx.x / 32; key < tokens; key += threads / 32) {
        float score = 0;
        for (int i = threadIdx.x % 32; i < dim; i += 32) score += query[i] * __bfloat162float(k[head + key * (long long)dim + i]);
        for (int lane = 16; lane > 0; lane /= 2) score += __shfl_xor_sync(0xffffffffu, score, lane);
        if (threadIdx.x % 32 == 0) scores[key] = score;
    }
    __syncthreads();
    float most = -INFINITY;
    for (int key = threadIdx.x; key < tokens; key += threads) most = fmaxf(most, scores[key]);
    most = reduced(most, true, room);
    float sum = 0;
    for (int key = threadIdx.x; key < tokens; key += threads) {
        scores[key] = __expf(scores[key] - most);
        sum += scores[key];
    }
    sum = reduced(sum, false, room);
    for (int i = threadIdx.x; i < dim; i += threads) {
        float mean = 0;
        for (int key = 0; key < tokens; ++key) mean += scores[key] * __bfloat162float(v[head + key * (long long)dim + i]);
        o[own + i] = __float2bfloat16(mean / sum);
    }
}
