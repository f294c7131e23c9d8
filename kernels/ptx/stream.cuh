// Loads and stores of 4 to 16 bytes in global memory, and loads of what waits in shared memory. PTX ISA
// 9.7.9.8 "ld", 9.7.9.9 "ld.global.nc", 9.7.9.11 "st".
#pragma once

#include "kernels/ptx/cache_policy.hpp"

namespace rooftile::ptx {

template <int bytes>
struct alignas(bytes) Words {
    unsigned word[bytes / 4];
};

#define ROOFTILE_LOAD(NAME, INSTRUCTION, ADDRESS, CONSTRAINT)                                 \
    __device__ inline void NAME(Words<16>& to, ADDRESS from) {                                \
        asm volatile(INSTRUCTION ".v4.u32 {%0, %1, %2, %3}, [%4];"                            \
                     : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3]) \
                     : CONSTRAINT(from));                                                     \
    }                                                                                         \
    __device__ inline void NAME(Words<8>& to, ADDRESS from) {                                 \
        asm volatile(INSTRUCTION ".v2.u32 {%0, %1}, [%2];"                                    \
                     : "=r"(to.word[0]), "=r"(to.word[1])                                     \
                     : CONSTRAINT(from));                                                     \
    }                                                                                         \
    __device__ inline void NAME(Words<4>& to, ADDRESS from) {                                 \
        asm volatile(INSTRUCTION ".u32 %0, [%1];" : "=r"(to.word[0]) : CONSTRAINT(from));     \
    }

/// And the same with a word for L2. sm_80 and later.
#define ROOFTILE_LOAD_GLOBAL(NAME, INSTRUCTION)                                               \
    ROOFTILE_LOAD(NAME, INSTRUCTION, const void*, "l")                                        \
    __device__ inline void NAME(Words<16>& to, const void* from, unsigned long long policy) { \
        asm volatile(INSTRUCTION ".L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"         \
                     : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3]) \
                     : "l"(from), "l"(policy));                                               \
    }                                                                                         \
    __device__ inline void NAME(Words<8>& to, const void* from, unsigned long long policy) {  \
        asm volatile(INSTRUCTION ".L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"                 \
                     : "=r"(to.word[0]), "=r"(to.word[1])                                     \
                     : "l"(from), "l"(policy));                                               \
    }                                                                                         \
    __device__ inline void NAME(Words<4>& to, const void* from, unsigned long long policy) {  \
        asm volatile(INSTRUCTION ".L2::cache_hint.u32 %0, [%1], %2;"                          \
                     : "=r"(to.word[0])                                                       \
                     : "l"(from), "l"(policy));                                               \
    }

/// What nobody writes while the kernel runs and nobody reads again from L1. Volatile: loads stay where they
/// are written, before the first use of any.
ROOFTILE_LOAD_GLOBAL(load_once, "ld.global.nc.L1::no_allocate")
/// The same through L1: copies of more than L2 holds are faster, reading alone is slower (docs/facts.md 47).
ROOFTILE_LOAD_GLOBAL(load_words, "ld.global")
/// Past L1, too, and as an access of the memory model: ptxas moves the others to where they are used, however far
/// behind the place where they are written, this one it keeps before what follows it.
ROOFTILE_LOAD_GLOBAL(load_in_order, "ld.relaxed.gpu.global.L1::no_allocate")
/// The same through L1: as ordered, within the CTA.
ROOFTILE_LOAD_GLOBAL(load_in_cta_order, "ld.relaxed.cta.global")
/// From shared memory, again each time it is written.
ROOFTILE_LOAD(load_shared, "ld.volatile.shared", unsigned, "r")

#undef ROOFTILE_LOAD_GLOBAL
#undef ROOFTILE_LOAD

enum class LoadPath { l1, past_l1, in_order, l1_in_order };

/// `word`: nothing, or a word for L2.
template <LoadPath path, int bytes, class... Word>
__device__ inline void load_along(Words<bytes>& to, const void* from, Word... word) {
    if constexpr (path == LoadPath::in_order) load_in_order(to, from, word...);
    else if constexpr (path == LoadPath::l1_in_order) load_in_cta_order(to, from, word...);
    else if constexpr (path == LoadPath::past_l1) load_once(to, from, word...);
    else load_words(to, from, word...);
}

template <LoadPath path, CachePolicy policy = CachePolicy::normal, int bytes>
__device__ inline void load_global(Words<bytes>& to, const void* from) {
#if __CUDA_ARCH__ >= 800
    if constexpr (policy != CachePolicy::normal) return load_along<path>(to, from, cache_policy_word(policy));
#endif
    load_along<path>(to, from);
}

/// Without a word about caches: st.global.cs is about one percent slower (docs/facts.md 47).
__device__ inline void store_words(void* to, const Words<16>& from) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from.word[0]), "r"(from.word[1]),
                 "r"(from.word[2]), "r"(from.word[3])
                 : "memory");
}
__device__ inline void store_words(void* to, const Words<8>& from) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(from.word[0]), "r"(from.word[1])
                 : "memory");
}
__device__ inline void store_words(void* to, const Words<4>& from) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(from.word[0]) : "memory");
}

}  // namespace rooftile::ptx
