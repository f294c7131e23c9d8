// Copies of contiguous bytes by the bulk engine. PTX ISA 9.7.9.25.4 "cp.async.bulk".
#pragma once

#include "kernels/ptx/cache_policy.hpp"

namespace rooftile::ptx {

/// `bytes`, a multiple of 16 at addresses that are, to shared memory; they complete on `barrier`.
template <CachePolicy policy = CachePolicy::normal>
__device__ inline void bulk_load(unsigned shared, const void* global, unsigned bytes, unsigned barrier) {
    if constexpr (policy == CachePolicy::normal)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                shared),
            "l"(global), "r"(bytes), "r"(barrier)
            : "memory");
    else
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], "
            "%2, "
            "[%3], %4;" ::"r"(shared),
            "l"(global), "r"(bytes), "r"(barrier), "l"(cache_policy_word(policy))
            : "memory");
}

/// Asks L2 for `bytes`, a multiple of 16 at an address that is. PTX ISA 9.7.9.25.4 "cp.async.bulk.prefetch".
__device__ inline void bulk_prefetch(const void* global, unsigned bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

/// `bytes`, a multiple of 16 at addresses that are, from shared memory; part of this thread's next
/// tma_store_commit().
__device__ inline void bulk_store(void* global, unsigned shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared),
                 "r"(bytes)
                 : "memory");
}

}  // namespace rooftile::ptx
