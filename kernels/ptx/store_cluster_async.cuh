// A word into a peer's shared memory.
#pragma once

namespace rooftile::ptx {

/// To `mapped`, which comes from map_to_rank, without waiting: its 4 bytes complete on `barrier`, which comes from map_to_rank of the same CTA.
/// PTX ISA 9.7.9.12 "st.async".
__device__ inline void store_cluster_async(unsigned mapped, unsigned word, unsigned barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(mapped),
                 "r"(word), "r"(barrier)
                 : "memory");
}

}  // namespace rooftile::ptx
