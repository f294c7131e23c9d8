// Warpgroup matrix multiply: D[64 x N] += A[64 x 16] * B[16 x N] (of 8 bits 32), A and B in shared memory, D in fp32
// registers. PTX ISA 9.7.15 "Asynchronous warpgroup level matrix multiply-accumulate".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

/// Orders register and shared-memory accesses before the wgmmas that follow.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `pending` committed groups are still running.
template <int pending>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Keeps the compiler from moving `value` across this point while a wgmma may still write it.
__device__ inline void wgmma_pin(float& value) { asm volatile("" : "+f"(value)::"memory"); }
/// Of all of them, by eights: a statement each takes the compiler longer.
template <int count>
__device__ void wgmma_pin_all(float (&d)[count]) {
    static_assert(count % 8 == 0, "sums of 16 columns are eight a thread");
#pragma unroll
    for (int i = 0; i < count; i += 8)
        asm volatile(""
                     : "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),
                       "+f"(d[i + 7])::"memory");
}

/// Matrix descriptor of a 128-byte-swizzled tile ("Shared Memory Matrix Layout"). Addresses and
/// offsets are in bytes, stored in units of 16. `stride_bytes` separates groups of eight rows (of K
/// where the tile is K-major, of MN where it is not); `leading_bytes` separates 64-element columns of
/// an MN-major tile and is ignored for a K-major one.
__device__ inline unsigned long long matrix_descriptor(unsigned shared, unsigned leading_bytes,
                                                       unsigned stride_bytes) {
    constexpr unsigned long long swizzle_128b = 1ull << 62;
    return swizzle_128b | static_cast<unsigned long long>(stride_bytes >> 4) << 32
           | static_cast<unsigned long long>(leading_bytes >> 4) << 16 | ((shared & 0x3ffff) >> 4);
}

// Operand lists of N = 8 ... 256, each the one before and four accumulators more: first their numbers in
// the instruction, then their constraints.
#define ROOFTILE_R8 "%0, %1, %2, %3"
#define ROOFTILE_R16 ROOFTILE_R8 ", %4, %5, %6, %7"
#define ROOFTILE_R24 ROOFTILE_R16 ", %8, %9, %10, %11"
#define ROOFTILE_R32 ROOFTILE_R24 ", %12, %13, %14, %15"
#define ROOFTILE_R40 ROOFTILE_R32 ", %16, %17, %18, %19"
#define ROOFTILE_R48 ROOFTILE_R40 ", %20, %21, %22, %23"
#define ROOFTILE_R56 ROOFTILE_R48 ", %24, %25, %26, %27"
#define ROOFTILE_R64 ROOFTILE_R56 ", %28, %29, %30, %31"
#define ROOFTILE_R72 ROOFTILE_R64 ", %32, %33, %34, %35"
#define ROOFTILE_R80 ROOFTILE_R72 ", %36, %37, %38, %39"
#define ROOFTILE_R88 ROOFTILE_R80 ", %40, %41, %42, %43"
#define ROOFTILE_R96 ROOFTILE_R88 ", %44, %45, %46, %47"
#define ROOFTILE_R104 ROOFTILE_R96 ", %48, %49, %50, %51"
#define ROOFTILE_R112 ROOFTILE_R104 ", %52, %53, %54, %55"
#define ROOFTILE_R120 ROOFTILE_R112 ", %56, %57, %58, %59"
#define ROOFTILE_R128 ROOFTILE_R120 ", %60, %61, %62, %63"
#define ROOFTILE_R136 ROOFTILE_R128 ", %64, %65, %66, %67"
#define ROOFTILE_R144 ROOFTILE_R136 ", %68, %69, %70, %71"
#define ROOFTILE_R152 ROOFTILE_R144 ", %72, %73, %74, %75"
#define ROOFTILE_R160 ROOFTILE_R152 ", %76, %77, %78, %79"
#define ROOFTILE_R168 ROOFTILE_R160 ", %80, %81, %82, %83"
#define ROOFTILE_R176 ROOFTILE_R168 ", %84, %85, %86, %87"
#define ROOFTILE_R184 ROOFTILE_R176 ", %88, %89, %90, %91"
#define ROOFTILE_R192 ROOFTILE_R184 ", %92, %93, %94, %95"
#define ROOFTILE_R200 ROOFTILE_R192 ", %96, %97, %98, %99"
#define ROOFTILE_R208 ROOFTILE_R200 ", %100, %101, %102, %103"
#define ROOFTILE_R216 ROOFTILE_R208 ", %104, %105, %106, %107"
#define ROOFTILE_R224 ROOFTILE_R216 ", %108, %109, %110, %111"
#define ROOFTILE_R232 ROOFTILE_R224 ", %112, %113, %114, %115"
#define ROOFTILE_R240 ROOFTILE_R232 ", %116, %117, %118, %119"
#define ROOFTILE_R248 ROOFTILE_R240 ", %120, %121, %122, %123"
#define ROOFTILE_R256 ROOFTILE_R248 ", %124, %125, %126, %127"

#define ROOFTILE_D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ROOFTILE_D8 ROOFTILE_D(0)
#define ROOFTILE_D16 ROOFTILE_D8, ROOFTILE_D(4)
#define ROOFTILE_D24 ROOFTILE_D16, ROOFTILE_D(8)
#define ROOFTILE_D32 ROOFTILE_D24, ROOFTILE_D(12)
#define ROOFTILE_D40 ROOFTILE_D32, ROOFTILE_D(16)
#define ROOFTILE_D48 ROOFTILE_D40, ROOFTILE_D(20)
#define ROOFTILE_D56 ROOFTILE_D48, ROOFTILE_D(24)
#define ROOFTILE_D64 ROOFTILE_D56, ROOFTILE_D(28)
#define ROOFTILE_D72 ROOFTILE_D64, ROOFTILE_D(32)
#define ROOFTILE_D80 ROOFTILE_D72, ROOFTILE_D(36)
#define ROOFTILE_D88 ROOFTILE_D80, ROOFTILE_D(40)
#define ROOFTILE_D96 ROOFTILE_D88, ROOFTILE_D(44)
#define ROOFTILE_D104 ROOFTILE_D96, ROOFTILE_D(48)
#define ROOFTILE_D112 ROOFTILE_D104, ROOFTILE_D(52)
#define ROOFTILE_D120 ROOFTILE_D112, ROOFTILE_D(56)
#define ROOFTILE_D128 ROOFTILE_D120, ROOFTILE_D(60)
#define ROOFTILE_D136 ROOFTILE_D128, ROOFTILE_D(64)
#define ROOFTILE_D144 ROOFTILE_D136, ROOFTILE_D(68)
#define ROOFTILE_D152 ROOFTILE_D144, ROOFTILE_D(72)
#define ROOFTILE_D160 ROOFTILE_D152, ROOFTILE_D(76)
#define ROOFTILE_D168 ROOFTILE_D160, ROOFTILE_D(80)
#define ROOFTILE_D176 ROOFTILE_D168, ROOFTILE_D(84)
#define ROOFTILE_D184 ROOFTILE_D176, ROOFTILE_D(88)
#define ROOFTILE_D192 ROOFTILE_D184, ROOFTILE_D(92)
#define ROOFTILE_D200 ROOFTILE_D192, ROOFTILE_D(96)
#define ROOFTILE_D208 ROOFTILE_D200, ROOFTILE_D(100)
#define ROOFTILE_D216 ROOFTILE_D208, ROOFTILE_D(104)
#define ROOFTILE_D224 ROOFTILE_D216, ROOFTILE_D(108)
#define ROOFTILE_D232 ROOFTILE_D224, ROOFTILE_D(112)
#define ROOFTILE_D240 ROOFTILE_D232, ROOFTILE_D(116)
#define ROOFTILE_D248 ROOFTILE_D240, ROOFTILE_D(120)
#define ROOFTILE_D256 ROOFTILE_D248, ROOFTILE_D(124)

// a, b, s, ta, tb are the numbers of the operands after the accumulators, which come last. scale_d = 0
// starts a new sum.
#define ROOFTILE_WGMMA(N, TYPE, a, b, s, ta, tb, ...)                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #s                                            \
                 ", 0;\n"                                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" ROOFTILE_R##N \
                 "}, "                                                                              \
                 "%" #a ", %" #b ", p, 1, 1, %" #ta ", %" #tb ";\n}"                                \
                 : __VA_ARGS__                                                                      \
                 : "l"(desc_a), "l"(desc_b), "r"(scale_d), "n"(int(a_major)), "n"(int(b_major)))

// Of 8 bits both operands are K-major; they may be of unlike types.
#define ROOFTILE_WGMMA_8(N, A_TYPE, B_TYPE, a, b, s, ...)                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #s                                                \
                 ", 0;\n"                                                                               \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32." A_TYPE "." B_TYPE " {" ROOFTILE_R##N \
                 "}, "                                                                                  \
                 "%" #a ", %" #b ", p, 1, 1;\n}"                                                        \
                 : __VA_ARGS__                                                                          \
                 : "l"(desc_a), "l"(desc_b), "r"(scale_d))

#define ROOFTILE_WGMMA_CASE(N, a, b, s, ta, tb)                                                                \
    if constexpr (n == N && type == Type::bf16) ROOFTILE_WGMMA(N, "bf16", a, b, s, ta, tb, ROOFTILE_D##N);     \
    if constexpr (n == N && type == Type::fp16) ROOFTILE_WGMMA(N, "f16", a, b, s, ta, tb, ROOFTILE_D##N);      \
    if constexpr (n == N && type == Type::fp8_e4m3 && b_type == Type::fp8_e4m3)                                \
        ROOFTILE_WGMMA_8(N, "e4m3", "e4m3", a, b, s, ROOFTILE_D##N);                                           \
    if constexpr (n == N && type == Type::fp8_e4m3 && b_type == Type::fp8_e5m2)                                \
        ROOFTILE_WGMMA_8(N, "e4m3", "e5m2", a, b, s, ROOFTILE_D##N);                                           \
    if constexpr (n == N && type == Type::fp8_e5m2 && b_type == Type::fp8_e4m3)                                \
        ROOFTILE_WGMMA_8(N, "e5m2", "e4m3", a, b, s, ROOFTILE_D##N);                                           \
    if constexpr (n == N && type == Type::fp8_e5m2 && b_type == Type::fp8_e5m2)                                \
        ROOFTILE_WGMMA_8(N, "e5m2", "e5m2", a, b, s, ROOFTILE_D##N)

/// d[n / 2]: thread t of the warpgroup holds rows 16 (t / 32) + t % 32 / 4 (+ 8), columns 2 (t % 4) + 8 j.
template <int n, Type type, Type b_type, Major a_major, Major b_major>
__device__ inline void wgmma(float* d, unsigned long long desc_a, unsigned long long desc_b, int scale_d) {
    static_assert(n % 8 == 0 && n >= 8 && n <= 256, "m64nNk16: N in steps of 8");
    static_assert(is_fp8(type) == is_fp8(b_type) && (is_fp8(type) || type == b_type), "types that one instruction takes");
    static_assert(!is_fp8(type) || (a_major == Major::k && b_major == Major::k), "of 8 bits rows of K alone");
    static_assert(int(Major::k) == 0 && int(Major::mn) == 1, "the instruction's transpose bits");
    ROOFTILE_WGMMA_CASE(8, 4, 5, 6, 7, 8);
    ROOFTILE_WGMMA_CASE(16, 8, 9, 10, 11, 12);
    ROOFTILE_WGMMA_CASE(24, 12, 13, 14, 15, 16);
    ROOFTILE_WGMMA_CASE(32, 16, 17, 18, 19, 20);
    ROOFTILE_WGMMA_CASE(40, 20, 21, 22, 23, 24);
    ROOFTILE_WGMMA_CASE(48, 24, 25, 26, 27, 28);
    ROOFTILE_WGMMA_CASE(56, 28, 29, 30, 31, 32);
    ROOFTILE_WGMMA_CASE(64, 32, 33, 34, 35, 36);
    ROOFTILE_WGMMA_CASE(72, 36, 37, 38, 39, 40);
    ROOFTILE_WGMMA_CASE(80, 40, 41, 42, 43, 44);
    ROOFTILE_WGMMA_CASE(88, 44, 45, 46, 47, 48);
    ROOFTILE_WGMMA_CASE(96, 48, 49, 50, 51, 52);
    ROOFTILE_WGMMA_CASE(104, 52, 53, 54, 55, 56);
    ROOFTILE_WGMMA_CASE(112, 56, 57, 58, 59, 60);
    ROOFTILE_WGMMA_CASE(120, 60, 61, 62, 63, 64);
    ROOFTILE_WGMMA_CASE(128, 64, 65, 66, 67, 68);
    ROOFTILE_WGMMA_CASE(136, 68, 69, 70, 71, 72);
    ROOFTILE_WGMMA_CASE(144, 72, 73, 74, 75, 76);
    ROOFTILE_WGMMA_CASE(152, 76, 77, 78, 79, 80);
    ROOFTILE_WGMMA_CASE(160, 80, 81, 82, 83, 84);
    ROOFTILE_WGMMA_CASE(168, 84, 85, 86, 87, 88);
    ROOFTILE_WGMMA_CASE(176, 88, 89, 90, 91, 92);
    ROOFTILE_WGMMA_CASE(184, 92, 93, 94, 95, 96);
    ROOFTILE_WGMMA_CASE(192, 96, 97, 98, 99, 100);
    ROOFTILE_WGMMA_CASE(200, 100, 101, 102, 103, 104);
    ROOFTILE_WGMMA_CASE(208, 104, 105, 106, 107, 108);
    ROOFTILE_WGMMA_CASE(216, 108, 109, 110, 111, 112);
    ROOFTILE_WGMMA_CASE(224, 112, 113, 114, 115, 116);
    ROOFTILE_WGMMA_CASE(232, 116, 117, 118, 119, 120);
    ROOFTILE_WGMMA_CASE(240, 120, 121, 122, 123, 124);
    ROOFTILE_WGMMA_CASE(248, 124, 125, 126, 127, 128);
    ROOFTILE_WGMMA_CASE(256, 128, 129, 130, 131, 132);
}

#undef ROOFTILE_WGMMA_CASE
#undef ROOFTILE_WGMMA
#undef ROOFTILE_WGMMA_8

}  // namespace rooftile::ptx
