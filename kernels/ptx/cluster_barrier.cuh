// The barrier of a cluster in its two halves, and a word into a peer's shared memory. PTX ISA 9.7.13.4
// "barrier.cluster".
#pragma once

namespace rooftile::ptx {

/// What was written before is visible to all CTAs of the cluster after their wait.
__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/// To `mapped`, which comes from map_to_rank, without waiting: its 4 bytes complete on `barrier`, which comes from map_to_rank of the same CTA.
/// PTX ISA 9.7.9.12 "st.async".
__device__ inline void store_cluster_async(unsigned mapped, unsigned word, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(mapped),
                 "r"(word), "r"(barrier)
                 : "memory");
}

}  // namespace rooftile::ptx
