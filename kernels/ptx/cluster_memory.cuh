// Sums to this CTA's shared memory and from that of any CTA of the cluster. PTX ISA 9.7.9.8 "ld",
// 9.7.9.11 "st", 9.7.9.24 "mapa".
#pragma once

namespace rooftile::ptx {

/// The address in CTA `rank` of what lies at `shared` here.
__device__ inline unsigned map_to_rank(unsigned shared, unsigned rank) {
    unsigned mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(shared), "r"(rank));
    return mapped;
}

__device__ inline void store_shared(unsigned shared, unsigned word) {
    asm volatile("st.shared::cta.u32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
}
__device__ inline unsigned load_shared(unsigned shared) {
    unsigned word;
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(word) : "r"(shared) : "memory");
    return word;
}

__device__ inline unsigned load_shared_word(unsigned shared) {
    unsigned word;
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(word) : "r"(shared));
    return word;
}
__device__ inline float load_shared_float(unsigned shared) {
    float x;
    asm volatile("ld.shared::cta.f32 %0, [%1];" : "=f"(x) : "r"(shared));
    return x;
}
__device__ inline unsigned short load_shared_half(unsigned shared) {
    unsigned short half;
    asm volatile("ld.shared::cta.u16 %0, [%1];" : "=h"(half) : "r"(shared));
    return half;
}
__device__ inline void store_shared_half(unsigned shared, unsigned short half) {
    asm volatile("st.shared::cta.u16 [%0], %1;" ::"r"(shared), "h"(half) : "memory");
}
__device__ inline void store_shared_1(unsigned shared, float x) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared), "f"(x) : "memory");
}
__device__ inline void store_shared_2(unsigned shared, const float* x) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(x[0]), "f"(x[1]) : "memory");
}
__device__ inline void store_shared_4(unsigned shared, const float* x) {
    asm volatile("st.shared::cta.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
}

/// 2 or 4 floats; `mapped` comes from map_to_rank.
template <int count>
__device__ inline void load_cluster(float* x, unsigned mapped) {
    static_assert(count == 2 || count == 4);
    if constexpr (count == 4)
        asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                     : "r"(mapped)
                     : "memory");
    else
        asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                     : "=f"(x[0]), "=f"(x[1])
                     : "r"(mapped)
                     : "memory");
}

}  // namespace rooftile::ptx
