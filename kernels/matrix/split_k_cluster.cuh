// The exchange between parts of K: each CTA of a cluster leaves its sums of a tile in its ring, and stores
// its share of the columns from the sums of all.
#pragma once

#include "kernels/matrix/accumulators.cuh"
#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace rooftile {

/// OwnSums with K in parts. Every thread has left its accumulators in its own CTA's ring,
/// four at a time in slots [slot][thread]; what it stores is the sum over that thread of every part, in
/// the order of the parts.
template <MatrixConfig C>
struct SumsOfParts {
    static constexpr int slot_bytes = 16 * C.consumer_warpgroups * C.warpgroup_threads;
    unsigned from[C.split_k];  // this thread's first slot of the share, in every part

    static __device__ unsigned first_slot(const MatrixShared<C>& shared) {
        return shared.base + 16 * (threadIdx.x - C.warpgroup_threads);
    }
    __device__ SumsOfParts(const MatrixShared<C>& shared, const MatrixTileScheduler<C>& scheduler) {
        constexpr int share_bytes = C.share_n() / 8 * slot_bytes;
#pragma unroll
        for (int p = 0; p < C.split_k; ++p)
            from[p] = ptx::map_to_rank(first_slot(shared) + scheduler.part * share_bytes,
                                       p * C.peers() + scheduler.rank);
    }
    template <int stride = 1, int count>
    __device__ void pairs(unsigned (&to)[count], int i, int j) const {
        static_assert(stride == 1, "whole slots");
        float d[2 * count];
        take(d, i, j);
#pragma unroll
        for (int e = 0; e < count; ++e) to[e] = ptx::pack2<C.c_type>(d[2 * e], d[2 * e + 1]);
    }
    template <int stride = 1, int count>
    __device__ void take(float (&d)[count], int i, int j) const {
        static_assert(stride == 1, "whole slots");
        constexpr int width = count < 4 ? count : 4;
#pragma unroll
        for (int e = 0; e < count; e += width) {
            const int accumulator = i * C.row_accumulators() + j + e;
            const int offset = accumulator / 4 * slot_bytes + accumulator % 4 * 4;
            ptx::load_cluster<width>(d + e, from[0] + offset);
#pragma unroll
            for (int p = 1; p < C.split_k; ++p) {
                float x[width];
                ptx::load_cluster<width>(x, from[p] + offset);
#pragma unroll
                for (int k = 0; k < width; ++k) d[e + k] += x[k];
            }
        }
    }
};

/// Leaves this thread's sums in the ring and waits until every CTA of the cluster has.
template <MatrixConfig C>
__device__ void publish(const Accumulators<C>& sums, const MatrixShared<C>& shared, unsigned turn) {
    const unsigned slots = SumsOfParts<C>::first_slot(shared);
    // Until here another warp's wgmma may read the ring.
    ptx::named_barrier_sync(ring_barrier, C.consumer_warpgroups * C.warpgroup_threads);
#pragma unroll
    for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
        for (int j = 0; j < C.row_accumulators(); j += 4)
            ptx::store_shared_4(slots + (i * C.row_accumulators() + j) / 4 * SumsOfParts<C>::slot_bytes,
                                &sums[i][j]);
    __syncwarp();
    shared.exchange().template commit_to_cluster<C.cluster_ctas()>(0);
    ptx::mbarrier_wait_cluster(shared.exchange().full(0), turn);
}

/// Tells the cluster's producers that this warp has read what it needs: TMA may refill the rings.
template <MatrixConfig C>
__device__ void end_exchange(const MatrixShared<C>& shared) {
    ptx::fence_async_proxy();
    __syncwarp();
    shared.exchange().template release_to_cluster<C.cluster_ctas()>(0);
}

}  // namespace rooftile
