// CUDA C++ for g++, as far as kernels without inline PTX use it: stands before the user's text. All functions are inlined, so that an
// access belongs to the user's line. runtime.cc defines what is declared here.
#pragma once
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>

#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __shared__ static __thread
#define __CUDACC__ 1
#define __CUDA_ARCH__ 700
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define ROOFTILE_IN __attribute__((always_inline)) inline

extern "C" {
void rooftile_touch(const volatile void*, size_t, int);
void rooftile_atomic_begin(const volatile void*, size_t, void*);
void rooftile_atomic_end(volatile void*, size_t, const void*);
int rooftile_barrier(int);
unsigned rooftile_warp(unsigned mask, int kind, uint64_t value, uint64_t* got);
unsigned rooftile_living();
int rooftile_rank();
void rooftile_fence();
void rooftile_stop(const char* kind, const char* message);
int rooftile_watches();
void rooftile_say(int line, const char* name, const char* value);
int rooftile_printf(const char*, ...) __attribute__((format(printf, 1, 2)));
extern char rooftile_dynamic_shared[];
}
__attribute__((used)) __thread char rooftile_shared_anchor[1];
#define printf rooftile_printf
namespace std {
using ::rooftile_printf;
}

// Vectors.
#define ROOFTILE_VECTORS(T, name, two, four)                                                       \
    struct name##1 { T x; };                                                                       \
    struct __attribute__((aligned(two))) name##2 { T x, y; };                                      \
    struct name##3 { T x, y, z; };                                                                 \
    struct __attribute__((aligned(four))) name##4 { T x, y, z, w; };                               \
    ROOFTILE_IN name##1 make_##name##1(T x) { return {x}; }                                        \
    ROOFTILE_IN name##2 make_##name##2(T x, T y) { return {x, y}; }                                \
    ROOFTILE_IN name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                        \
    ROOFTILE_IN name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ROOFTILE_VECTORS(signed char, char, 2, 4)
ROOFTILE_VECTORS(unsigned char, uchar, 2, 4)
ROOFTILE_VECTORS(short, short, 4, 8)
ROOFTILE_VECTORS(unsigned short, ushort, 4, 8)
ROOFTILE_VECTORS(int, int, 8, 16)
ROOFTILE_VECTORS(unsigned, uint, 8, 16)
ROOFTILE_VECTORS(long, long, 16, 16)
ROOFTILE_VECTORS(unsigned long, ulong, 16, 16)
ROOFTILE_VECTORS(long long, longlong, 16, 16)
ROOFTILE_VECTORS(unsigned long long, ulonglong, 16, 16)
ROOFTILE_VECTORS(float, float, 8, 16)
ROOFTILE_VECTORS(double, double, 16, 16)
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
extern "C" {
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
}
constexpr int warpSize = 32;

// Barriers, fences, what a thread says and how it ends.
ROOFTILE_IN void __syncthreads() { rooftile_barrier(0); }
ROOFTILE_IN int __syncthreads_count(int p) { return rooftile_barrier(p != 0); }
ROOFTILE_IN int __syncthreads_and(int p) { return rooftile_barrier(p == 0) == 0; }
ROOFTILE_IN int __syncthreads_or(int p) { return rooftile_barrier(p != 0) != 0; }
ROOFTILE_IN void __syncwarp(unsigned mask = ~0u) { rooftile_warp(mask, 0, 0, nullptr); }
ROOFTILE_IN void __threadfence() { rooftile_fence(); }
ROOFTILE_IN void __threadfence_system() { rooftile_fence(); }
ROOFTILE_IN void __threadfence_block() {}
ROOFTILE_IN void __trap() { rooftile_stop("trap", "__trap()"); }
ROOFTILE_IN void __nanosleep(unsigned) {
    char none;
    rooftile_atomic_begin(&none, 1, &none);  // others run
}
ROOFTILE_IN long long clock64() { return clock(); }
ROOFTILE_IN size_t __cvta_generic_to_shared(const void* p) { return size_t(p); }
ROOFTILE_IN size_t __cvta_generic_to_global(const void* p) { return size_t(p); }

// Lanes of a warp exchange up to 8 bytes.
template <class T>
ROOFTILE_IN uint64_t rooftile_bits(T v) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &v, sizeof v);
    return bits;
}
template <class T>
ROOFTILE_IN T rooftile_from(uint64_t bits) {
    T v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}
ROOFTILE_IN int rooftile_lane() { return rooftile_rank() % 32; }
template <class T>
ROOFTILE_IN T rooftile_shuffle(unsigned mask, T v, int from, bool inside) {
    uint64_t got[32] = {};
    const unsigned active = rooftile_warp(mask, 1, rooftile_bits(v), got);
    if (!inside) return v;
    if (!(active >> (from & 31) & 1)) {
        // Of a lane that is not in the mask the value is undefined, and may go unused.
        if (!(mask >> (from & 31) & 1)) return rooftile_from<T>(0xfefefefefefefefe);
        rooftile_stop("lane", "the lane that is read is in the mask and does not take part: it ended, or there is none");
    }
    return rooftile_from<T>(got[from & 31]);
}
template <class T>
ROOFTILE_IN T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    return rooftile_shuffle(mask, v, (rooftile_lane() & ~(width - 1)) + (from & (width - 1)), true);
}
template <class T>
ROOFTILE_IN T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int lane = rooftile_lane();
    return rooftile_shuffle(mask, v, lane - int(by), (lane & (width - 1)) >= int(by));
}
template <class T>
ROOFTILE_IN T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int lane = rooftile_lane();
    return rooftile_shuffle(mask, v, lane + int(by), (lane & (width - 1)) + int(by) < width);
}
template <class T>
ROOFTILE_IN T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
    const int lane = rooftile_lane(), to = lane ^ by;
    return rooftile_shuffle(mask, v, to, (to & ~(width - 1)) <= (lane & ~(width - 1)));
}
ROOFTILE_IN unsigned __activemask() { return rooftile_living(); }
template <class T>
ROOFTILE_IN unsigned __match_any_sync(unsigned mask, T v) {
    uint64_t got[32] = {};
    const unsigned active = rooftile_warp(mask, 2, rooftile_bits(v), got);
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= unsigned((active >> i & 1) && got[i] == rooftile_bits(v)) << i;
    return out;
}
template <class T>
ROOFTILE_IN unsigned __match_all_sync(unsigned mask, T v, int* all) {
    const unsigned same = __match_any_sync(mask, v), out = same == (mask & rooftile_living()) ? mask : 0;
    *all = out != 0;
    return out;
}
ROOFTILE_IN unsigned __ballot_sync(unsigned mask, int p) {
    uint64_t got[32] = {};
    const unsigned active = rooftile_warp(mask, 3, p != 0, got);
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= unsigned((active >> i & 1) && got[i]) << i;
    return out;
}
ROOFTILE_IN int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
ROOFTILE_IN int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
template <class T, class F>
ROOFTILE_IN T rooftile_reduce(unsigned mask, T v, F f) {
    uint64_t got[32] = {};
    const unsigned active = rooftile_warp(mask, 4, rooftile_bits(v), got);
    T out = v;
    bool first = true;
    for (int i = 0; i < 32; ++i)
        if (active >> i & 1) out = first ? rooftile_from<T>(got[i]) : T(f(out, rooftile_from<T>(got[i]))), first = false;
    return out;
}
#define ROOFTILE_REDUCE(name, expression)                                          \
    template <class T>                                                             \
    ROOFTILE_IN T __reduce_##name##_sync(unsigned mask, T v) {                     \
        return rooftile_reduce(mask, v, [](T a, T b) -> T { return expression; }); \
    }
ROOFTILE_REDUCE(add, a + b)
ROOFTILE_REDUCE(min, b < a ? b : a)
ROOFTILE_REDUCE(max, a < b ? b : a)
ROOFTILE_REDUCE(and, a & b)
ROOFTILE_REDUCE(or, a | b)
ROOFTILE_REDUCE(xor, a ^ b)

// Memory.
template <class T>
ROOFTILE_IN T __ldg(const T* p) { return *p; }
#define __ldca __ldg
#define __ldcg __ldg
#define __ldcs __ldg
#define __ldlu __ldg
#define __ldcv __ldg
template <class T>
ROOFTILE_IN void __stcs(T* p, std::type_identity_t<T> v) { *p = v; }
#define __stwb __stcs
#define __stcg __stcs
#define __stwt __stcs
ROOFTILE_IN void* rooftile_memcpy(void* to, const void* from, size_t bytes) {
    rooftile_touch(from, bytes, 0), rooftile_touch(to, bytes, 1);
    return __builtin_memcpy(to, from, bytes);
}
ROOFTILE_IN void* rooftile_memset(void* to, int value, size_t bytes) {
    rooftile_touch(to, bytes, 1);
    return __builtin_memset(to, value, bytes);
}
namespace std {
using ::rooftile_memcpy;
using ::rooftile_memset;
}
#define memcpy rooftile_memcpy
#define memset rooftile_memset
ROOFTILE_IN void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    rooftile_touch(from, bytes - zeros, 0), rooftile_touch(to, bytes, 1);
    if (uintptr_t(from) % bytes || uintptr_t(to) % bytes) rooftile_stop("misaligned", "__pipeline_memcpy_async: both addresses are multiples of its bytes");
    __builtin_memcpy(to, from, bytes - zeros);
    __builtin_memset(static_cast<char*>(to) + bytes - zeros, 0, zeros);
}
ROOFTILE_IN void __pipeline_commit() {}
ROOFTILE_IN void __pipeline_wait_prior(size_t) {}
template <class T, class F>
ROOFTILE_IN T rooftile_atomic(T* p, F f) {
    std::remove_volatile_t<T> old, next;
    rooftile_atomic_begin(p, sizeof old, &old);
    next = f(old);
    rooftile_atomic_end(p, sizeof next, &next);
    return old;
}
#define ROOFTILE_ATOMIC(name, expression)                                                     \
    template <class T>                                                                        \
    ROOFTILE_IN T name(T* p, std::type_identity_t<T> v) {                                     \
        return rooftile_atomic(p, [v](T old) -> T { return expression; });                    \
    }                                                                                         \
    template <class T>                                                                        \
    ROOFTILE_IN T name##_block(T* p, std::type_identity_t<T> v) { return name(p, v); }        \
    template <class T>                                                                        \
    ROOFTILE_IN T name##_system(T* p, std::type_identity_t<T> v) { return name(p, v); }
ROOFTILE_ATOMIC(atomicAdd, old + v)
ROOFTILE_ATOMIC(atomicSub, old - v)
ROOFTILE_ATOMIC(atomicExch, ((void)old, v))
ROOFTILE_ATOMIC(atomicMin, v < old ? v : old)
ROOFTILE_ATOMIC(atomicMax, old < v ? v : old)
ROOFTILE_ATOMIC(atomicInc, old >= v ? T(0) : T(old + 1))
ROOFTILE_ATOMIC(atomicDec, old == 0 || old > v ? v : T(old - 1))
ROOFTILE_ATOMIC(atomicAnd, old & v)
ROOFTILE_ATOMIC(atomicOr, old | v)
ROOFTILE_ATOMIC(atomicXor, old ^ v)
template <class T>
ROOFTILE_IN T atomicCAS(T* p, std::type_identity_t<T> is, std::type_identity_t<T> then) {
    return rooftile_atomic(p, [=](T old) -> T { return old == is ? then : old; });
}

// Numbers.
#define ROOFTILE_LEAST(T)                                     \
    ROOFTILE_IN constexpr T min(T a, T b) { return b < a ? b : a; } \
    ROOFTILE_IN constexpr T max(T a, T b) { return a < b ? b : a; }
ROOFTILE_LEAST(int)
ROOFTILE_LEAST(unsigned)
ROOFTILE_LEAST(long)
ROOFTILE_LEAST(unsigned long)
ROOFTILE_LEAST(long long)
ROOFTILE_LEAST(unsigned long long)
ROOFTILE_IN float min(float a, float b) { return fminf(a, b); }
ROOFTILE_IN float max(float a, float b) { return fmaxf(a, b); }
ROOFTILE_IN double min(double a, double b) { return fmin(a, b); }
ROOFTILE_IN double max(double a, double b) { return fmax(a, b); }
template <class A, class B>
    requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
ROOFTILE_IN constexpr auto min(A a, B b) { return min(std::common_type_t<A, B>(a), std::common_type_t<A, B>(b)); }
template <class A, class B>
    requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
ROOFTILE_IN constexpr auto max(A a, B b) { return max(std::common_type_t<A, B>(a), std::common_type_t<A, B>(b)); }
ROOFTILE_IN float rsqrtf(float x) { return 1 / sqrtf(x); }
ROOFTILE_IN double rsqrt(double x) { return 1 / sqrt(x); }
ROOFTILE_IN float rsqrt(float x) { return rsqrtf(x); }
ROOFTILE_IN float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
ROOFTILE_IN float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
ROOFTILE_IN float norm4df(float x, float y, float z, float w) { return sqrtf(x * x + y * y + z * z + w * w); }
ROOFTILE_IN float rnorm3df(float x, float y, float z) { return 1 / norm3df(x, y, z); }
ROOFTILE_IN float rhypotf(float x, float y) { return 1 / hypotf(x, y); }
ROOFTILE_IN float rcbrtf(float x) { return 1 / cbrtf(x); }
ROOFTILE_IN float sinpif(float x) { return float(sin(M_PI * x)); }
ROOFTILE_IN float cospif(float x) { return float(cos(M_PI * x)); }
ROOFTILE_IN float __saturatef(float x) { return x < 1 ? x > 0 ? x : 0 : 1; }
ROOFTILE_IN float __fdividef(float x, float y) { return x / y; }
#define fdividef __fdividef
#define __expf expf
#define __exp10f exp10f
#define __exp2f exp2f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
#define __tanhf tanhf
#define __frsqrt_rn rsqrtf
#define ROOFTILE_ROUNDED(suffix)                                                                \
    ROOFTILE_IN float __fadd_##suffix(float x, float y) { return x + y; }                       \
    ROOFTILE_IN float __fsub_##suffix(float x, float y) { return x - y; }                       \
    ROOFTILE_IN float __fmul_##suffix(float x, float y) { return x * y; }                       \
    ROOFTILE_IN float __fdiv_##suffix(float x, float y) { return x / y; }                       \
    ROOFTILE_IN float __fmaf_##suffix(float x, float y, float z) { return fmaf(x, y, z); }      \
    ROOFTILE_IN float __frcp_##suffix(float x) { return 1 / x; }                                \
    ROOFTILE_IN float __fsqrt_##suffix(float x) { return sqrtf(x); }                            \
    ROOFTILE_IN double __dadd_##suffix(double x, double y) { return x + y; }                    \
    ROOFTILE_IN double __dmul_##suffix(double x, double y) { return x * y; }                    \
    ROOFTILE_IN double __fma_##suffix(double x, double y, double z) { return fma(x, y, z); }
ROOFTILE_ROUNDED(rn)
ROOFTILE_ROUNDED(rz)
#define ROOFTILE_TO(name, to, from) \
    ROOFTILE_IN to __##name##_rn(from x) { return (to)rint(x); }       \
    ROOFTILE_IN to __##name##_rz(from x) { return (to)x; }             \
    ROOFTILE_IN to __##name##_rd(from x) { return (to)floor(x); }      \
    ROOFTILE_IN to __##name##_ru(from x) { return (to)ceil(x); }
ROOFTILE_TO(float2int, int, float)
ROOFTILE_TO(float2uint, unsigned, float)
ROOFTILE_TO(float2ll, long long, float)
ROOFTILE_TO(double2int, int, double)
ROOFTILE_IN float __int2float_rn(int x) { return float(x); }
ROOFTILE_IN float __uint2float_rn(unsigned x) { return float(x); }
ROOFTILE_IN float __double2float_rn(double x) { return float(x); }
ROOFTILE_IN int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
ROOFTILE_IN unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
ROOFTILE_IN float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
ROOFTILE_IN float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
ROOFTILE_IN long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
ROOFTILE_IN double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
ROOFTILE_IN int __popc(unsigned x) { return __builtin_popcount(x); }
ROOFTILE_IN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
ROOFTILE_IN int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
ROOFTILE_IN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)(x)) : 64; }
ROOFTILE_IN int __ffs(int x) { return __builtin_ffs(x); }
ROOFTILE_IN int __ffsll(long long x) { return __builtin_ffsll(x); }
ROOFTILE_IN unsigned __brev(unsigned x) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
    return out;
}
ROOFTILE_IN int __mulhi(int x, int y) { return int((long long)(x) * y >> 32); }
ROOFTILE_IN unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)(x) * y >> 32); }
ROOFTILE_IN int __mul24(int x, int y) { return x * y; }
ROOFTILE_IN int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += (signed char)(a >> i) * (signed char)(b >> i);
    return c;
}
ROOFTILE_IN unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    const unsigned long long both = (unsigned long long)(y) << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) out |= unsigned(both >> ((s >> 4 * i & 7) * 8) & 255) << 8 * i;
    return out;
}
ROOFTILE_IN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned s) { return unsigned((((unsigned long long)(high) << 32 | low) << (s & 31)) >> 32); }
ROOFTILE_IN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned s) { return unsigned(((unsigned long long)(high) << 32 | low) >> (s & 31)); }
#define __assume(x) ((void)0)
#define __builtin_assume(x) ((void)0)
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")

// fp16 and bf16: bits, computed in fp32 and rounded to nearest even.
ROOFTILE_IN unsigned short rooftile_rounded(float x, bool brain) {
    const unsigned bits = __builtin_bit_cast(unsigned, x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7fff;
    if (brain) return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (size >= 0x477ff000) return (unsigned short)(sign | 0x7c00);  // 65520 and more
    if (size < 0x38800000) return (unsigned short)(sign | unsigned(rintf(__builtin_bit_cast(float, size) * 16777216.f)));
    return (unsigned short)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}
ROOFTILE_IN float rooftile_widened(unsigned short h, bool brain) {
    const unsigned sign = unsigned(h & 0x8000) << 16, size = h & 0x7fff;
    if (brain) return __builtin_bit_cast(float, unsigned(h) << 16);
    if (size < 0x400) return __builtin_bit_cast(float, sign | __builtin_bit_cast(unsigned, float(size) / 16777216.f));
    return __builtin_bit_cast(float, sign | (size >= 0x7c00 ? 0x7f800000 | (size & 0x3ff) << 13 : (size << 13) + 0x38000000));
}
#define ROOFTILE_SMALL(name, two, brain)                                                              \
    struct two;                                                                                       \
    struct name {                                                                                     \
        using pair = two;                                                                             \
        unsigned short bits;                                                                          \
        name() = default;                                                                             \
        template <class T>                                                                            \
            requires std::is_arithmetic_v<T>                                                          \
        ROOFTILE_IN name(T x) : bits(rooftile_rounded(float(x), brain)) {}                            \
        ROOFTILE_IN operator float() const { return rooftile_widened(bits, brain); }                  \
        template <class T>                                                                            \
            requires std::is_arithmetic_v<T>                                                          \
        ROOFTILE_IN explicit operator T() const { return T(float(*this)); }                           \
        ROOFTILE_IN name& operator+=(name y) { return *this = float(*this) + float(y); }              \
        ROOFTILE_IN name& operator-=(name y) { return *this = float(*this) - float(y); }              \
        ROOFTILE_IN name& operator*=(name y) { return *this = float(*this) * float(y); }              \
        ROOFTILE_IN name& operator/=(name y) { return *this = float(*this) / float(y); }              \
        ROOFTILE_IN name operator-() const { return -float(*this); }                                  \
    };                                                                                                \
    struct __attribute__((aligned(4))) two {                                                          \
        using one = name;                                                                             \
        name x, y;                                                                                    \
        two() = default;                                                                              \
        ROOFTILE_IN two(name x, name y) : x(x), y(y) {}                                               \
    };
ROOFTILE_SMALL(__half, __half2, false)
ROOFTILE_SMALL(__nv_bfloat16, __nv_bfloat162, true)
using half = __half;
using __nv_half = half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
template <class H>
concept rooftile_one = requires { typename H::pair; };
template <class P>
concept rooftile_two = requires { typename P::one; };
#define ROOFTILE_OPERATOR(sign, name)                                                                                              \
    template <rooftile_one H>                                                                                                              \
    ROOFTILE_IN H operator sign(H x, H y) { return float(x) sign float(y); }       \
    template <rooftile_two P>                                                                                                              \
    ROOFTILE_IN P operator sign(P x, P y) { return {x.x sign y.x, x.y sign y.y}; }    \
    template <rooftile_one H>                                                                                                              \
    ROOFTILE_IN H __h##name(H x, H y) { return x sign y; }                         \
    template <rooftile_two P>                                                                                                              \
    ROOFTILE_IN P __h##name##2(P x, P y) { return x sign y; }
ROOFTILE_OPERATOR(+, add)
ROOFTILE_OPERATOR(-, sub)
ROOFTILE_OPERATOR(*, mul)
#define __h2div rooftile_h2div
ROOFTILE_OPERATOR(/, div)
#define ROOFTILE_COMPARED(sign, name)                                                                                            \
    template <rooftile_one H>                                                                                                            \
    ROOFTILE_IN bool operator sign(H x, H y) { return float(x) sign float(y); }                  \
    template <rooftile_one H>                                                                                                            \
    ROOFTILE_IN bool __h##name(H x, H y) { return float(x) sign float(y); }
ROOFTILE_COMPARED(<, lt)
ROOFTILE_COMPARED(<=, le)
ROOFTILE_COMPARED(>, gt)
ROOFTILE_COMPARED(>=, ge)
ROOFTILE_COMPARED(==, eq)
ROOFTILE_COMPARED(!=, ne)
#define ROOFTILE_OF_SMALL(name, expression)                                                                    \
    template <rooftile_one H>                                                                                          \
    ROOFTILE_IN H name(H h) { const float x = h; return expression; }          \
    template <rooftile_two P>                                                                                          \
    ROOFTILE_IN P rooftile_pair_##name(P p) { return {name(p.x), name(p.y)}; }
ROOFTILE_OF_SMALL(__hneg, -x)
ROOFTILE_OF_SMALL(__habs, fabsf(x))
ROOFTILE_OF_SMALL(hexp, expf(x))
ROOFTILE_OF_SMALL(hexp2, exp2f(x))
ROOFTILE_OF_SMALL(hlog, logf(x))
ROOFTILE_OF_SMALL(hsqrt, sqrtf(x))
ROOFTILE_OF_SMALL(hrsqrt, 1 / sqrtf(x))
ROOFTILE_OF_SMALL(hrcp, 1 / x)
ROOFTILE_OF_SMALL(htanh, tanhf(x))
ROOFTILE_OF_SMALL(hsin, sinf(x))
ROOFTILE_OF_SMALL(hcos, cosf(x))
#define __hneg2 rooftile_pair___hneg
#define __habs2 rooftile_pair___habs
#define h2exp rooftile_pair_hexp
#define h2exp2 rooftile_pair_hexp2
#define h2log rooftile_pair_hlog
#define h2sqrt rooftile_pair_hsqrt
#define h2rsqrt rooftile_pair_hrsqrt
#define h2rcp rooftile_pair_hrcp
template <rooftile_one H>
ROOFTILE_IN H __hfma(H x, H y, H z) { return fmaf(x, y, z); }
template <rooftile_two P>
ROOFTILE_IN P __hfma2(P x, P y, P z) { return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)}; }
template <rooftile_one H>
ROOFTILE_IN H __hmax(H x, H y) { return fmaxf(x, y); }
template <rooftile_one H>
ROOFTILE_IN H __hmin(H x, H y) { return fminf(x, y); }
template <rooftile_two P>
ROOFTILE_IN P __hmax2(P x, P y) { return {__hmax(x.x, y.x), __hmax(x.y, y.y)}; }
template <rooftile_one H>
ROOFTILE_IN bool __hisnan(H x) { return isnan(float(x)); }
ROOFTILE_IN half __float2half(float x) { return x; }
ROOFTILE_IN half __float2half_rn(float x) { return x; }
ROOFTILE_IN half __double2half(double x) { return x; }
ROOFTILE_IN half __int2half_rn(int x) { return x; }
ROOFTILE_IN float __half2float(half x) { return x; }
ROOFTILE_IN float __low2float(half2 x) { return x.x; }
ROOFTILE_IN float __high2float(half2 x) { return x.y; }
template <rooftile_two P>
ROOFTILE_IN typename P::one __low2half(P x) { return x.x; }
template <rooftile_two P>
ROOFTILE_IN typename P::one __high2half(P x) { return x.y; }
ROOFTILE_IN half2 __float2half2_rn(float x) { return {x, x}; }
ROOFTILE_IN half2 __floats2half2_rn(float x, float y) { return {x, y}; }
ROOFTILE_IN half2 __float22half2_rn(float2 x) { return {x.x, x.y}; }
ROOFTILE_IN float2 __half22float2(half2 x) { return {x.x, x.y}; }
ROOFTILE_IN half2 __half2half2(half x) { return {x, x}; }
ROOFTILE_IN half2 __halves2half2(half x, half y) { return {x, y}; }
ROOFTILE_IN half2 make_half2(half x, half y) { return {x, y}; }
ROOFTILE_IN half __ushort_as_half(unsigned short x) { return rooftile_from<half>(x); }
ROOFTILE_IN unsigned short __half_as_ushort(half x) { return x.bits; }
ROOFTILE_IN __nv_bfloat16 __float2bfloat16(float x) { return x; }
ROOFTILE_IN __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
ROOFTILE_IN float __bfloat162float(__nv_bfloat16 x) { return x; }
ROOFTILE_IN __nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
ROOFTILE_IN __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
ROOFTILE_IN __nv_bfloat162 __float22bfloat162_rn(float2 x) { return {x.x, x.y}; }
ROOFTILE_IN float2 __bfloat1622float2(__nv_bfloat162 x) { return {x.x, x.y}; }
ROOFTILE_IN __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
ROOFTILE_IN __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
ROOFTILE_IN __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }

// Groups of threads.
namespace cooperative_groups {
struct thread_block {
    ROOFTILE_IN static void sync() { rooftile_barrier(0); }
    ROOFTILE_IN static unsigned thread_rank() { return unsigned(rooftile_rank()); }
    ROOFTILE_IN static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    ROOFTILE_IN static unsigned num_threads() { return size(); }
    ROOFTILE_IN static dim3 group_index() { return blockIdx; }
    ROOFTILE_IN static dim3 thread_index() { return threadIdx; }
    ROOFTILE_IN static dim3 dim_threads() { return blockDim; }
    ROOFTILE_IN static dim3 group_dim() { return blockDim; }
};
ROOFTILE_IN thread_block this_thread_block() { return {}; }
struct grid_group {
    ROOFTILE_IN static void sync() { rooftile_stop("refused", "a barrier of the whole grid: CTAs are stepped one after the other"); }
    ROOFTILE_IN static unsigned long long thread_rank() {
        return ((unsigned long long)(blockIdx.z) * gridDim.y * gridDim.x + blockIdx.y * gridDim.x + blockIdx.x) * thread_block::size() + thread_block::thread_rank();
    }
    ROOFTILE_IN static unsigned long long size() { return (unsigned long long)(gridDim.x) * gridDim.y * gridDim.z * thread_block::size(); }
    ROOFTILE_IN static unsigned long long num_threads() { return size(); }
    ROOFTILE_IN static bool is_valid() { return true; }
};
ROOFTILE_IN grid_group this_grid() { return {}; }
template <unsigned n, class Parent = void>
struct thread_block_tile {
    static_assert(n <= 32 && (n & (n - 1)) == 0, "tiles of 1 to 32 threads");
    thread_block_tile() = default;
    template <class Other>
    ROOFTILE_IN thread_block_tile(const thread_block_tile<n, Other>&) {}
    ROOFTILE_IN static unsigned thread_rank() { return unsigned(rooftile_rank()) % n; }
    ROOFTILE_IN static constexpr unsigned size() { return n; }
    ROOFTILE_IN static constexpr unsigned num_threads() { return n; }
    ROOFTILE_IN static unsigned meta_group_rank() { return unsigned(rooftile_rank()) / n; }
    ROOFTILE_IN static unsigned meta_group_size() { return (thread_block::size() + n - 1) / n; }
    ROOFTILE_IN static unsigned mask() { return unsigned((1ull << n) - 1) << (rooftile_lane() & ~int(n - 1)); }
    ROOFTILE_IN static void sync() { __syncwarp(mask()); }
    template <class T>
    ROOFTILE_IN static T shfl(T v, int from) { return __shfl_sync(mask(), v, from, n); }
    template <class T>
    ROOFTILE_IN static T shfl_up(T v, unsigned by) { return __shfl_up_sync(mask(), v, by, n); }
    template <class T>
    ROOFTILE_IN static T shfl_down(T v, unsigned by) { return __shfl_down_sync(mask(), v, by, n); }
    template <class T>
    ROOFTILE_IN static T shfl_xor(T v, unsigned by) { return __shfl_xor_sync(mask(), v, int(by), n); }
    ROOFTILE_IN static int any(int p) { return __any_sync(mask(), p); }
    ROOFTILE_IN static int all(int p) { return __all_sync(mask(), p); }
    ROOFTILE_IN static unsigned ballot(int p) { return __ballot_sync(mask(), p) >> (rooftile_lane() & ~int(n - 1)); }
};
template <unsigned n, class P>
ROOFTILE_IN thread_block_tile<n, P> tiled_partition(const P&) { return {}; }
template <class G>
ROOFTILE_IN void sync(const G& group) { group.sync(); }
#define ROOFTILE_FUNCTOR(name, expression)                             \
    template <class T>                                                 \
    struct name {                                                      \
        ROOFTILE_IN T operator()(T a, T b) const { return expression; } \
    };
ROOFTILE_FUNCTOR(plus, a + b)
ROOFTILE_FUNCTOR(less, b < a ? b : a)
ROOFTILE_FUNCTOR(greater, a < b ? b : a)
ROOFTILE_FUNCTOR(bit_and, a & b)
ROOFTILE_FUNCTOR(bit_or, a | b)
ROOFTILE_FUNCTOR(bit_xor, a ^ b)
template <class G, class T, class F>
ROOFTILE_IN T reduce(const G& group, T v, F f) { return rooftile_reduce(group.mask(), v, f); }
}  // namespace cooperative_groups

// Names of the host's that stay in a file.
typedef struct rooftile_stream* cudaStream_t;
typedef struct rooftile_event* cudaEvent_t;
typedef int cudaError_t;

// What the runtime is given.
struct rooftile_parameter {
    int bytes, pointee;
    char kind, pointee_kind;
    const char* type;
};
/// 'f', 'h' (fp16), 'b' (bf16), 'i'; 's' of others.
template <class T>
constexpr char rooftile_kind() {
    using U = std::remove_cv_t<T>;
    return std::is_floating_point_v<U> ? 'f' : std::is_same_v<U, half> ? 'h' : std::is_same_v<U, __nv_bfloat16> ? 'b' : std::is_integral_v<U> || std::is_enum_v<U> ? 'i' : 's';
}
template <class T>
constexpr rooftile_parameter rooftile_parameter_of(const char* name) {
    rooftile_parameter p{int(sizeof(T)), 0, rooftile_kind<T>(), 's', name};
    if constexpr (std::is_pointer_v<T>) {
        using U = std::remove_pointer_t<T>;
        p.kind = 'p';
        if constexpr (!std::is_void_v<U>) p.pointee = sizeof(U), p.pointee_kind = rooftile_kind<U>();
    }
    return p;
}
template <class T>
const char* rooftile_type() { return __PRETTY_FUNCTION__; }
template <class K>
struct rooftile_kernel_of;
template <class... P>
struct rooftile_kernel_of<void (*)(P...)> {
    static constexpr int count = sizeof...(P);
    static inline const rooftile_parameter parameters[count + 1] = {rooftile_parameter_of<std::remove_cvref_t<P>>(rooftile_type<std::remove_cvref_t<P>>())..., {}};
    static void call(void (*kernel)(P...), void** arguments) {
        [&]<size_t... i>(std::index_sequence<i...>) { kernel(*static_cast<std::remove_cvref_t<P>*>(arguments[i])...); }(std::index_sequence_for<P...>());
    }
};

/// Of functions of one name, as `index`, which the C library has too, the kernel.
template <class... P>
auto rooftile_pick(void (*kernel)(P...)) { return kernel; }
#define ROOFTILE_STEP(...)                                                                                        \
    using rooftile_entry = rooftile_kernel_of<decltype(rooftile_pick(&__VA_ARGS__))>;                             \
    extern "C" void rooftile_kernel(void** arguments) { rooftile_entry::call(&__VA_ARGS__, arguments); }          \
    extern "C" const rooftile_parameter* rooftile_parameters(int* count) { return *count = rooftile_entry::count, rooftile_entry::parameters; }

/// A value as text, for --watch.
template <class T>
void rooftile_watch(int line, const char* name, const T& v) {
    if (!rooftile_watches()) return;
    char text[256];
    const auto number = [](char* to, size_t n, auto x) -> int {
        if constexpr (std::is_same_v<decltype(x), bool>) return snprintf(to, n, x ? "true" : "false");
        else if constexpr (std::is_pointer_v<decltype(x)>) return snprintf(to, n, "%p", (const void*)x);
        else if constexpr (std::is_floating_point_v<decltype(x)>) return snprintf(to, n, "%.9g", double(x));
        else if constexpr (std::is_unsigned_v<decltype(x)>) return snprintf(to, n, "%llu", (unsigned long long)x);
        else if constexpr (std::is_convertible_v<decltype(x), float> && std::is_class_v<decltype(x)>) return snprintf(to, n, "%.9g", double(float(x)));
        else return snprintf(to, n, "%lld", (long long)x);
    };
    if constexpr (requires { v.w; }) {
        int n = number(text, 60, v.x);
        n += snprintf(text + n, 4, ", "), n += number(text + n, 60, v.y), n += snprintf(text + n, 4, ", "), n += number(text + n, 60, v.z);
        n += snprintf(text + n, 4, ", "), number(text + n, 60, v.w);
    } else if constexpr (requires { v.y; }) {
        const int n = number(text, 60, v.x);
        snprintf(text + n, 4, ", "), number(text + n + 2, 60, v.y);
    } else number(text, sizeof text, v);
    rooftile_say(line, name, text);
}
