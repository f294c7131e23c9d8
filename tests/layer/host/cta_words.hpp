// What kernels of kernels/layer take of CUDA and of kernels/ptx, where their text runs on the CPU. Comes after tests/fake/cta/text.hpp.
#pragma once

#include <cmath>

#include "tests/fake/cta/text.hpp"

// One CTA runs at a time, and its threads are fibers of one thread.
#undef __shared__
#define __shared__ static

namespace rooftile {

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float fmaxf(float x, float y) { return std::fmax(x, y); }
inline float __expf(float x) { return std::exp(x); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }

/// What lane `from` of the own warp has, once all lanes are there.
template <class T>
T of_lane(T x, unsigned from) {
    static T exchanged[32][32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    exchanged[warp][lane] = x;
    Fibers::now().meet(Fibers::now().warp(), 32);
    const T other = exchanged[warp][from];
    Fibers::now().meet(Fibers::now().warp(), 32);
    return other;
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int apart) {
    return of_lane(x, threadIdx.x % 32 ^ unsigned(apart));
}
template <class T>
T __shfl_sync(unsigned, T x, int lane) {
    return of_lane(x, unsigned(lane));
}
template <class T>
T __shfl_up_sync(unsigned, T x, int apart) {
    const unsigned lane = threadIdx.x % 32;
    return of_lane(x, lane >= unsigned(apart) ? lane - unsigned(apart) : lane);
}

namespace ptx {
template <Type type>
float widen(unsigned bits) {
    return number_of(type, static_cast<unsigned short>(bits));
}
template <Type type>
float widen_upper(unsigned word) {
    return widen<type>(word >> 16);
}
template <Type type>
unsigned short narrow(float value) {
    return bits_of(type, value);
}
}  // namespace ptx
}  // namespace rooftile
