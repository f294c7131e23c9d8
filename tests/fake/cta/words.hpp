// What some kernels take of CUDA and of kernels/ptx beside tests/fake/cta/text.hpp, where their text runs on the CPU.
#pragma once

#include <cmath>

#include "tests/fake/cta/text.hpp"

namespace rooftile {

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float fmaxf(float x, float y) { return std::fmax(x, y); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T>
T __ldg(const T* from) {
    if (on_global_read) on_global_read(from, sizeof(T));
    return *from;
}
inline int __ldg(const int* from) { return *from; }  // of lengths and page tables, which are no operands
struct alignas(8) uint2 {
    unsigned x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int __ffs(int bits) { return bits == 0 ? 0 : std::countr_zero(unsigned(bits)) + 1; }
inline void __trap() { std::abort(); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(std::uint64_t{x} * y >> 32); }
inline unsigned atomicInc(unsigned* counter, unsigned last) { return ptx::count_arrival(counter, last); }
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

inline unsigned __ballot_sync(unsigned, bool mine) {
    unsigned all = 0;
    for (unsigned lane = 0; lane < 32; ++lane) all |= (of_lane(mine ? 1u : 0u, lane) & 1) << lane;
    return all;
}

namespace ptx {
inline void store_shared(unsigned shared, unsigned word) { shared_at<unsigned>(shared) = word; }
inline void store_shared_2(unsigned shared, const float* x) { shared_at<float2>(shared) = {x[0], x[1]}; }
inline unsigned map_to_rank(unsigned, unsigned) { std::abort(); }
inline unsigned cluster_rank() { return 0; }
inline void pause() { Fibers::now().leave(); }
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
