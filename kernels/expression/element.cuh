// Elements as they lie in memory, and their values in fp32.
#pragma once

#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile::expression {

/// Bits of a 16-bit number; what they mean is in the type's name.
struct bf16 {
    static constexpr Type type = Type::bf16;
    unsigned short bits;
};
struct fp16 {
    static constexpr Type type = Type::fp16;
    unsigned short bits;
};
/// One byte, 0 or 1.
struct boolean {
    unsigned char byte;
};

__device__ inline float widened(bf16 x) { return ptx::widen<Type::bf16>(x.bits); }
__device__ inline float widened(fp16 x) { return ptx::widen<Type::fp16>(x.bits); }
__device__ inline float widened(float x) { return x; }
__device__ inline bool widened(boolean x) { return x.byte != 0; }

/// `x` rounded to nearest even.
template <class T>
__device__ inline T narrowed(float x) {
    if constexpr (sizeof(T) >= 4) return static_cast<T>(x);
    // As one of a pair: to one bf16 alone only the slow conversion unit goes.
    else return {static_cast<unsigned short>(ptx::pack2<T::type>(x, 0.0f))};
}
template <class T>
__device__ inline T narrowed(bool x) {
    return {static_cast<unsigned char>(x)};
}
template <class T>
__device__ inline T narrowed(long long x) {
    return x;
}
/// `x` as a T holds it.
template <class T>
__device__ inline float rounded(float x) {
    return widened(narrowed<T>(x));
}

}  // namespace rooftile::expression
