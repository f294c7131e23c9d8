// Loads from global memory. PTX ISA 9.7.9.9 "ld.global.nc".
#pragma once

namespace rooftile::ptx {

/// A word that nobody writes while the kernel runs.
__device__ inline unsigned load_constant(const unsigned* global) {
    unsigned word;
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(global));
    return word;
}

/// Asks L2 for the line at `global`. PTX ISA 9.7.9.16 "prefetch".
__device__ inline void prefetch_l2(const void* global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

}  // namespace rooftile::ptx
