// Register fragments to shared memory and to 16-bit types. PTX ISA 9.7.14.5.16 "stmatrix", "cvt".
#pragma once

#include "kernels/types.hpp"

namespace rooftile::ptx {

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void store_matrix_x4(unsigned shared, unsigned r0, unsigned r1, unsigned r2, unsigned r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(r0),
                 "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}

/// Two of them; lanes 0-15 give the addresses.
__device__ inline void store_matrix_x2(unsigned shared, unsigned r0, unsigned r1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared), "r"(r0), "r"(r1)
                 : "memory");
}

/// The same, each matrix transposed on its way: what lane l addresses is column l % 8 of the matrix in registers.
__device__ inline void store_matrix_x4_transposed(unsigned shared, unsigned r0, unsigned r1, unsigned r2,
                                                  unsigned r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}
__device__ inline void store_matrix_x2_transposed(unsigned shared, unsigned r0, unsigned r1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared), "r"(r0),
                 "r"(r1)
                 : "memory");
}

/// Two fp32 values rounded to nearest even, `low` in the lower half; of 8 bits in the lower half of the word, and what is larger than
/// the largest number, Inf too, is that number.
template <Type type>
__device__ inline unsigned pack2(float low, float high) {
    unsigned packed;
    if constexpr (type == Type::bf16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    else if constexpr (type == Type::fp16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    else {
        unsigned short pair;
        if constexpr (type == Type::fp8_e4m3) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
        packed = pair;
    }
    return packed;
}

}  // namespace rooftile::ptx
