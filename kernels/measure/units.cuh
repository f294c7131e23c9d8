// Short kernels as one writes them first: a thread takes 16 bytes, a CTA a row of RMSNorm, a warp a row of a matrix-vector product. They
// have no loops left in machine code, so that its instructions can be counted by reading it.
#pragma once

#include "kernels/measure/unit_arguments.hpp"
#include "kernels/ptx/convert.cuh"

namespace rooftile {

/// 16 bytes as numbers.
template <Type type>
__device__ inline void unpack(const uint4& words, float (&to)[unit_pack(type)]) {
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
    if constexpr (type == Type::fp32) {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = __uint_as_float(word[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[2 * i] = ptx::widen<type>(word[i] & 0xffffu), to[2 * i + 1] = ptx::widen_upper<type>(word[i]);
    }
}

template <Type type>
__device__ inline uint4 packed(const float (&from)[unit_pack(type)]) {
    unsigned word[4];
    if constexpr (type == Type::fp32) {
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = __float_as_uint(from[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word[i] = ptx::narrow<type>(from[2 * i]) | static_cast<unsigned>(ptx::narrow<type>(from[2 * i + 1])) << 16;
    }
    return {word[0], word[1], word[2], word[3]};
}

template <UnitKind kind>
__device__ inline float unit_value(float x, float y) {
    if constexpr (kind == UnitKind::product) return x * y;
    const float below = 1.0f + __expf(-x);
    if constexpr (kind == UnitKind::silu_divide) return x / below;
    if constexpr (kind == UnitKind::silu_fast_divide) return __fdividef(x, below);
    if constexpr (kind == UnitKind::silu_reciprocal) return x * __frcp_rn(below);
    return x * below;
}

/// `count` times 16 bytes.
template <UnitKind kind, Type type>
__global__ void __launch_bounds__(unit_threads) unit_pointwise(uint4* z, const uint4* x, const uint4* y, long long count) {
    const long long i = static_cast<long long>(blockIdx.x) * unit_threads + threadIdx.x;
    if (i >= count) return;
    constexpr int pack = unit_pack(type);
    float a[pack], b[pack] = {}, out[pack];
    unpack<type>(x[i], a);
    if constexpr (kind == UnitKind::product) unpack<type>(y[i], b);
#pragma unroll
    for (int k = 0; k < pack; ++k) out[k] = unit_value<kind>(a[k], b[k]);
    z[i] = packed<type>(out);
}

__device__ inline float warp_sum(float value) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
    return value;
}

/// A CTA a row.
template <Type type>
__global__ void __launch_bounds__(unit_cta_threads(UnitKind::rms_norm, type))
    unit_rms_norm(uint4* z, const uint4* x, const uint4* weight, long long count) {
    constexpr int pack = unit_pack(type), threads = unit_cta_threads(UnitKind::rms_norm, type);
    __shared__ float sums[threads / 32];
    const long long i = static_cast<long long>(blockIdx.x) * threads + threadIdx.x;
    if (i >= count) return;  // whole CTAs: rows are whole
    float a[pack], w[pack], out[pack];
    unpack<type>(x[i], a);
    unpack<type>(weight[threadIdx.x], w);
    float square = 0;
#pragma unroll
    for (int k = 0; k < pack; ++k) square += a[k] * a[k];
    square = warp_sum(square);
    sums[threadIdx.x / 32] = square;  // all lanes have the same
    __syncthreads();
    float all = 0;
#pragma unroll
    for (int k = 0; k < threads / 32; ++k) all += sums[k];
    const float scale = rsqrtf(all * (1.0f / unit_columns) + static_cast<float>(unit_epsilon));
#pragma unroll
    for (int k = 0; k < pack; ++k) out[k] = a[k] * scale * w[k];
    z[i] = packed<type>(out);
}

/// A warp a row; `count` rows.
template <Type type>
__global__ void __launch_bounds__(unit_threads) unit_gemv(void* z, const uint4* x, const uint4* vector, long long count) {
    constexpr int pack = unit_pack(type), packs = unit_columns / pack / 32;  // of a lane
    const int lane = static_cast<int>(threadIdx.x % 32);
    const long long row = (static_cast<long long>(blockIdx.x) * unit_threads + threadIdx.x) / 32;
    if (row >= count) return;
    const uint4* from = x + row * (unit_columns / pack) + lane;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        float a[pack], b[pack];
        unpack<type>(from[32 * k], a);
        unpack<type>(vector[32 * k + lane], b);
#pragma unroll
        for (int j = 0; j < pack; ++j) sum += a[j] * b[j];
    }
    sum = warp_sum(sum);
    // All lanes store the same: one sector, and no branch.
    if constexpr (type == Type::fp32) static_cast<float*>(z)[row] = sum;
    else static_cast<unsigned short*>(z)[row] = ptx::narrow<type>(sum);
}

template <Type type>
__device__ inline double element(const void* at, long long i) {
    if constexpr (type == Type::fp32) return static_cast<const float*>(at)[i];
    else return ptx::widen<type>(static_cast<const unsigned short*>(at)[i]);
}

/// What fp32 arithmetic and one rounding to the type may be off by. __expf is exact to some 8 units for |x| < 6.
template <Type type>
__device__ inline double unit_bound(double expected, double absolute_sum) {
    constexpr double own = type == Type::fp32 ? 0x1p-24 : type == Type::fp16 ? 0x1p-11 : 0x1p-8;
    constexpr double arithmetic = 0x1p-19;
    // Of a sum each lane adds up 128 products, the tree 5 times.
    return (own + arithmetic) * fabs(expected) + 0x1p-16 * absolute_sum + 1e-30;
}

__device__ inline void judge(double got, double expected, double bound, UnitVerdict& own) {
    const double ratio = fabs(got - expected) / bound;
    ++own.checked;
    if (!(ratio <= 1)) ++own.wrong;  // a NaN, too
    own.worst = fmaxf(own.worst, ratio == ratio ? static_cast<float>(ratio) : __int_as_float(0x7f800000));
}

/// Every element of `rows` rows of z, a warp a row.
template <UnitKind kind, Type type>
__global__ void __launch_bounds__(unit_threads)
    judge_units(const void* z, const void* x, const void* y, long long rows, UnitVerdict* verdict) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const long long warps = static_cast<long long>(gridDim.x) * unit_threads / 32;
    UnitVerdict own{};
    for (long long row = (static_cast<long long>(blockIdx.x) * unit_threads + threadIdx.x) / 32; row < rows; row += warps) {
        const long long first = row * unit_columns;
        double sum = 0, absolute = 0;
        if constexpr (!is_pointwise(kind)) {
            for (int c = lane; c < unit_columns; c += 32) {
                const double a = element<type>(x, first + c), b = kind == UnitKind::gemv ? element<type>(y, c) : a;
                sum += a * b, absolute += fabs(a * b);
            }
            for (int other = 16; other > 0; other /= 2)
                sum += __shfl_xor_sync(~0u, sum, other), absolute += __shfl_xor_sync(~0u, absolute, other);
        }
        if constexpr (kind == UnitKind::gemv) {
            if (lane == 0) judge(element<type>(z, row), sum, unit_bound<type>(sum, absolute), own);
        } else {
            const double scale = kind == UnitKind::rms_norm ? rsqrt(sum / unit_columns + unit_epsilon) : 0;
            for (int c = lane; c < unit_columns; c += 32) {
                const double a = element<type>(x, first + c), below = 1 + exp(-a);
                const double expected = kind == UnitKind::product            ? a * element<type>(y, first + c)
                                        : kind == UnitKind::rms_norm         ? a * scale * element<type>(y, c)
                                        : kind == UnitKind::silu_no_division ? a * below
                                                                             : a / below;
                judge(element<type>(z, first + c), expected, unit_bound<type>(expected, 0), own);
            }
        }
    }
    atomicAdd(&verdict->checked, own.checked);
    atomicAdd(&verdict->wrong, own.wrong);
    atomicMax(reinterpret_cast<int*>(&verdict->worst), __float_as_int(own.worst));  // none is below 0
}

}  // namespace rooftile
