// The bulk tensor copy engine. PTX ISA 9.7.9.27 "cp.async.bulk.tensor".
#pragma once

#include "kernels/ptx/tensor_map.hpp"

namespace rooftile::ptx {

__device__ inline void tma_prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Box at element (x, y), x contiguous, to shared memory; its bytes complete on `barrier`. What lies
/// outside the tensor arrives as zeros and counts in full.
__device__ inline void tma_load_2d(unsigned shared, const TensorMap& map, int x, int y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

/// The same; L2 keeps what it reads as `policy`, a CachePolicy, says.
__device__ inline void tma_load_2d(unsigned shared, const TensorMap& map, int x, int y, unsigned barrier,
                                   unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
        : "memory");
}

/// Box at element (x, y) of matrix (z, w), of a tensor of four dimensions.
__device__ inline void tma_load_4d(unsigned shared, const TensorMap& map, int x, int y, int z, int w, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
        : "memory");
}
__device__ inline void tma_load_4d(unsigned shared, const TensorMap& map, int x, int y, int z, int w, unsigned barrier,
                                   unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "l"(policy)
        : "memory");
}

/// The same box to the same offset in every CTA of the cluster whose bit stands in `ctas`.
__device__ inline void tma_load_2d_multicast(unsigned shared, const TensorMap& map, int x, int y,
                                             unsigned barrier, unsigned short ctas) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(ctas)
        : "memory");
}
__device__ inline void tma_load_2d_multicast(unsigned shared, const TensorMap& map, int x, int y,
                                             unsigned barrier, unsigned short ctas,
                                             unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(ctas), "l"(policy)
        : "memory");
}

/// A box of four axes at (x, 0, 0, w), of `matrix` where there is a fifth one, to the same offset in every CTA of `ctas` where several
/// share it.
template <bool batched, bool shared_by_peers, bool hinted>
__device__ inline void tma_load_pairs(unsigned shared, const TensorMap& map, int x, int w, int matrix, unsigned barrier,
                                      unsigned short ctas, unsigned long long policy) {
    const int zero = 0;
    if constexpr (batched) {
        if constexpr (shared_by_peers && hinted)
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                "[%0], [%1, {%2, %3, %3, %4, %5}], [%6], %7, %8;" ::"r"(shared),
                "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(matrix), "r"(barrier), "h"(ctas), "l"(policy)
                : "memory");
        else if constexpr (shared_by_peers)
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%0], [%1, {%2, %3, %3, %4, %5}], [%6], %7;" ::"r"(shared),
                "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(matrix), "r"(barrier), "h"(ctas)
                : "memory");
        else if constexpr (hinted)
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                "[%0], [%1, {%2, %3, %3, %4, %5}], [%6], %7;" ::"r"(shared),
                "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(matrix), "r"(barrier), "l"(policy)
                : "memory");
        else
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %3, %4, %5}], [%6];" ::"r"(
                    shared),
                "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(matrix), "r"(barrier)
                : "memory");
    } else if constexpr (shared_by_peers && hinted) {
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
            "[%0], [%1, {%2, %3, %3, %4}], [%5], %6, %7;" ::"r"(shared),
            "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(barrier), "h"(ctas), "l"(policy)
            : "memory");
    } else if constexpr (shared_by_peers) {
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1, {%2, %3, %3, %4}], [%5], %6;" ::"r"(shared),
            "l"(&map), "r"(x), "r"(zero), "r"(w), "r"(barrier), "h"(ctas)
            : "memory");
    } else if constexpr (hinted) {
        tma_load_4d(shared, map, x, zero, zero, w, barrier, policy);
    } else {
        tma_load_4d(shared, map, x, zero, zero, w, barrier);
    }
}

/// Box from shared memory to element (x, y); what lies outside the tensor is not written.
__device__ inline void tma_store_2d(const TensorMap& map, unsigned shared, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(shared)
                 : "memory");
}

/// The same; L2 keeps what is written as `policy`, a CachePolicy, says.
__device__ inline void tma_store_2d(const TensorMap& map, unsigned shared, int x, int y,
                                    unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::
            "l"(&map),
        "r"(x), "r"(y), "r"(shared), "l"(policy)
        : "memory");
}

// The same of a tensor of three axes.

__device__ inline void tma_load_3d(unsigned shared, const TensorMap& map, int x, int y, int z, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
        "[%5];" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
        : "memory");
}
__device__ inline void tma_load_3d(unsigned shared, const TensorMap& map, int x, int y, int z, unsigned barrier,
                                   unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(policy)
        : "memory");
}
__device__ inline void tma_load_3d_multicast(unsigned shared, const TensorMap& map, int x, int y, int z,
                                             unsigned barrier, unsigned short ctas) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(ctas)
        : "memory");
}
__device__ inline void tma_load_3d_multicast(unsigned shared, const TensorMap& map, int x, int y, int z,
                                             unsigned barrier, unsigned short ctas, unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(shared),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(ctas), "l"(policy)
        : "memory");
}
__device__ inline void tma_store_3d(const TensorMap& map, unsigned shared, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(z), "r"(shared)
                 : "memory");
}
__device__ inline void tma_store_3d(const TensorMap& map, unsigned shared, int x, int y, int z,
                                    unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2, %3}], [%4], %5;" ::
            "l"(&map),
        "r"(x), "r"(y), "r"(z), "r"(shared), "l"(policy)
        : "memory");
}

__device__ inline void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until all but the newest `pending` stores of this thread have read their shared memory.
template <int pending>
__device__ inline void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

/// Waits until all but the last `pending` groups of this thread's stores are done: what they wrote is there.
template <int pending>
__device__ inline void tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

/// Orders this thread's shared-memory writes before later reads by the copy engine.
__device__ inline void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// The same of global memory: between what this thread knows to be written and what the copy engine reads for it.
__device__ inline void fence_async_proxy_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

}  // namespace rooftile::ptx
