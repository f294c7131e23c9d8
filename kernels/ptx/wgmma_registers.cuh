// Warpgroup matrix multiply with the first operand in registers: D[64 x N] += A[64 x 16] * B[16 x N]. PTX ISA 9.7.15.
#pragma once

#include "kernels/ptx/wgmma.cuh"

namespace rooftile::ptx {

#define ROOFTILE_WGMMA(N, TYPE, a0, a1, a2, a3, b, s, tb, ...)                                                  \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #s                                                        \
                 ", 0;\n"                                                                                       \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" ROOFTILE_R##N             \
                 "}, "                                                                                          \
                 "{%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1, %" #tb ";\n}"                     \
                 : __VA_ARGS__                                                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc_b), "r"(scale_d), "n"(int(b_major)))

#define ROOFTILE_WGMMA_CASE(N, a0, a1, a2, a3, b, s, tb)                                                                \
    if constexpr (n == N && type == Type::bf16) ROOFTILE_WGMMA(N, "bf16", a0, a1, a2, a3, b, s, tb, ROOFTILE_D##N); \
    if constexpr (n == N && type == Type::fp16) ROOFTILE_WGMMA(N, "f16", a0, a1, a2, a3, b, s, tb, ROOFTILE_D##N)

/// d[n / 2] as ptx::wgmma has it; a: of 16 columns of the first operand rows 16 (t / 32) + t % 32 / 4, columns 2 (t % 4) and the
/// next; the same 8 rows below; both again 8 columns further. Sums of an earlier wgmma in d, narrowed in pairs, lie so.
template <int n, Type type, Major b_major>
__device__ inline void wgmma_registers(float* d, const unsigned* a, unsigned long long desc_b, int scale_d) {
    static_assert(n % 32 == 0 && n >= 32 && n <= 256, "widths that are a multiple of 32");
    ROOFTILE_WGMMA_CASE(32, 16, 17, 18, 19, 20, 21, 22);
    ROOFTILE_WGMMA_CASE(64, 32, 33, 34, 35, 36, 37, 38);
    ROOFTILE_WGMMA_CASE(96, 48, 49, 50, 51, 52, 53, 54);
    ROOFTILE_WGMMA_CASE(128, 64, 65, 66, 67, 68, 69, 70);
    ROOFTILE_WGMMA_CASE(160, 80, 81, 82, 83, 84, 85, 86);
    ROOFTILE_WGMMA_CASE(192, 96, 97, 98, 99, 100, 101, 102);
    ROOFTILE_WGMMA_CASE(224, 112, 113, 114, 115, 116, 117, 118);
    ROOFTILE_WGMMA_CASE(256, 128, 129, 130, 131, 132, 133, 134);
}

#undef ROOFTILE_WGMMA_CASE
#undef ROOFTILE_WGMMA

}  // namespace rooftile::ptx
