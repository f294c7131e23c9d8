// Warp matrix multiply from registers, and the loads that fill them. PTX ISA 9.7.14.5 "mma", "ldmatrix".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8, and gets
/// elements 2 (l % 4) and the next of row l / 4 of each.
__device__ inline void load_matrix_x4(unsigned (&r)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

/// The same, each matrix transposed: elements 2 (l % 4) and the next of column l / 4.
__device__ inline void load_matrix_x4_transposed(unsigned (&r)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared)
                 : "memory");
}

#define ROOFTILE_MMA(TYPE)                                                              \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

/// D[16 x 8] += A[16 x 16] * B[16 x 8]: lane l holds rows l / 4 (+ 8), columns 2 (l % 4) and the next of D.
template <Type type>
__device__ inline void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (type == Type::bf16) ROOFTILE_MMA("bf16");
    else ROOFTILE_MMA("f16");
}

#undef ROOFTILE_MMA

}  // namespace rooftile::ptx
