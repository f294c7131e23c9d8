#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(call) check_status((call), #call, __FILE__, __LINE__)

inline void check_status(cudaError_t status, const char* what, const char* file, int line) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(status));
    exit(EXIT_FAILURE);
}

template <class T>
__host__ __device__ T ceil_div(T dividend, T divisor) {
    return (dividend + divisor - 1) / divisor;
}

__device__ inline float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
    return value;
}

float* random_floats(size_t n) {
    float* values = (float*)malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) values[i] = (float)rand() / RAND_MAX * 2.0f - 1.0f;
    return values;
}
