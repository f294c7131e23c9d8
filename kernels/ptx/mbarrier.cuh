// Shared-memory barriers that count arrivals and bytes. PTX ISA 9.7.13.15 "mbarrier".
#pragma once

#include "kernels/ptx/wait_limit.cuh"

namespace rooftile::ptx {

/// Arrivals that complete one phase; bytes expected by arrive_expect count beside them.
__device__ inline void mbarrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

/// Makes initialised barriers visible to the async proxy and to the cluster.
__device__ inline void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// One arrival that also announces `bytes` of asynchronous copies.
__device__ inline void mbarrier_arrive_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void mbarrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives on the barrier at the same offset in the shared memory of CTA `rank` of the cluster. Says that
/// reads are over; it publishes no writes, so it needs no cluster-wide release: `.release.cluster` would put
/// a MEMBAR.ALL.GPU before every arrival, which took a third of the speed of a multicast matrix product
/// (docs/facts.md).
__device__ inline void mbarrier_arrive_remote(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

/// The same, and publishes what this thread wrote, or has seen written, to whoever waits there with
/// mbarrier_wait_cluster. Dear: once a tile, never once a k-step.
__device__ inline void mbarrier_arrive_remote_release(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

__device__ inline bool mbarrier_try_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
}

__device__ inline bool mbarrier_try_wait_cluster(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
}

/// Waits until the phase of this parity has completed. The loop stands in C++: ptxas takes twice as
/// long over a branch inside the asm block.
__device__ inline void mbarrier_wait(unsigned barrier, unsigned parity) {
    const WaitLimit limit;
    while (!mbarrier_try_wait(barrier, parity)) limit.more();
}

/// The same, and sees what the arrivals of other CTAs published.
__device__ inline void mbarrier_wait_cluster(unsigned barrier, unsigned parity) {
    const WaitLimit limit;
    while (!mbarrier_try_wait_cluster(barrier, parity)) limit.more();
}

}  // namespace rooftile::ptx
