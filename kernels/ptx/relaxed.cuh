// Words that CTAs of one grid tell each other in device memory while they run. PTX ISA 9.7.9.8 "ld", 9.7.9.11
// "st", 8.7 "Memory Consistency Model": an access of 8 bytes is never seen by halves.
#pragma once

namespace rooftile::ptx {

__device__ inline unsigned long long load_relaxed(const unsigned long long* from) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ inline void store_relaxed(unsigned long long* to, unsigned long long word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

}  // namespace rooftile::ptx
