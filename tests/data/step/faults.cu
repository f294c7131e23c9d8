// A kernel of each kind of fault that `step` names, called as the kind; the line is marked.
#include <cassert>

__global__ void outside(const float* x, float* y, int n) {
    y[threadIdx.x] = x[n - threadIdx.x];  // here
}
__global__ void index(const float* x, float* y, int n) {
    float row[4];
    for (int k = 0; k <= 4; ++k)
        row[k] = x[k];  // here
    y[threadIdx.x] = row[0];
}
__global__ void wild(const float* x, float* y, int n) {
    float* nowhere = nullptr;
    nowhere[threadIdx.x] = x[0];  // here
}
__global__ void local(const float* x, float* y, int n) {
    __shared__ float* other;
    float mine = x[threadIdx.x];
    if (threadIdx.x == 0) other = &mine;
    __syncthreads();
    y[threadIdx.x] = *other + (threadIdx.x == 1 ? 0 : mine);  // here
    __syncthreads();
}
__global__ void misaligned(const float* x, float* y, int n) {
    const float2 v = *reinterpret_cast<const float2*>(x + threadIdx.x);  // here
    y[threadIdx.x] = v.x + v.y;
}
__global__ void unwritten(const float* x, float* y, int n) {
    __shared__ float a[64], b[64];
    if (threadIdx.x != 17) a[threadIdx.x] = x[threadIdx.x];
    b[threadIdx.x] = 0;
    __syncthreads();
    y[threadIdx.x] = a[63 - threadIdx.x] + b[0];  // here
}
__global__ void race(const float* x, float* y, int n) {
    __shared__ float a[64];
    a[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = a[63 - threadIdx.x];  // here
}
__device__ float rotated(float v) {
    __syncthreads();  // here
    return v;
}
__global__ void divergent(const float* x, float* y, int n) {
    if (threadIdx.x % 2 == 0) y[threadIdx.x] = rotated(x[threadIdx.x]);
    __syncthreads();
}
__global__ void mask(const float* x, float* y, int n) {
    y[threadIdx.x] = __shfl_sync(0x0000ffff, x[threadIdx.x], 0);  // here
}
__global__ void lane(const float* x, float* y, int n) {
    float v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_down_sync(0xffffffff, v, 16);  // here
    y[threadIdx.x] = v;
}
__global__ void failed_assertion(const float* x, float* y, int n) {
    assert(n == 63);  // here
}
__global__ void trap(const float* x, float* y, int n) {
    if (threadIdx.x == 5)
        __trap();  // here
}
__global__ void division(const float* x, float* y, int n) {
    y[threadIdx.x] = 7 / (n - 64);  // here
}
__device__ int deep(int n) {  // here
    volatile int much[4096];
    much[n & 4095] = n;
    return n < 0 ? much[0] : deep(n + 1) + much[1];
}
__global__ void stack(const float* x, float* y, int n) { y[0] = deep(0); }
__global__ void endless(const float* x, float* y, int n) {
    while (n > 0) n += 0;  // here
}
