// Loads and stores of 4 to 16 bytes in global memory, and loads of what waits in shared memory. PTX ISA
// 9.7.9.8 "ld", 9.7.9.9 "ld.global.nc", 9.7.9.11 "st".
#pragma once

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

/// What nobody writes while the kernel runs and nobody reads again from L1. Volatile: loads stay where they
/// are written, before the first use of any.
ROOFTILE_LOAD(load_once, "ld.global.nc.L1::no_allocate", const void*, "l")
/// The same through L1: copies of more than L2 holds are faster, reading alone is slower (docs/facts.md 47).
ROOFTILE_LOAD(load_words, "ld.global", const void*, "l")
/// Past L1, too, and as an access of the memory model: ptxas moves the others to where they are used, however far
/// behind the place where they are written, this one it keeps before what follows it.
ROOFTILE_LOAD(load_in_order, "ld.relaxed.gpu.global.L1::no_allocate", const void*, "l")
/// The same through L1: as ordered, within the CTA.
ROOFTILE_LOAD(load_in_cta_order, "ld.relaxed.cta.global", const void*, "l")
/// From shared memory, again each time it is written.
ROOFTILE_LOAD(load_shared, "ld.volatile.shared", unsigned, "r")

#undef ROOFTILE_LOAD

enum class LoadPath { l1, past_l1, in_order, l1_in_order };

template <LoadPath path, int bytes>
__device__ inline void load_global(Words<bytes>& to, const void* from) {
    if constexpr (path == LoadPath::in_order) load_in_order(to, from);
    else if constexpr (path == LoadPath::l1_in_order) load_in_cta_order(to, from);
    else if constexpr (path == LoadPath::past_l1) load_once(to, from);
    else load_words(to, from);
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
