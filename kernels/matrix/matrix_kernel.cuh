// A matrix kernel for Hopper, C[M x N] = A[M x K] * B[K x N] with fp32 accumulators, of which an operation gives the load policy and the
// epilogue.
//
// One CTA has one producer warpgroup and 1-3 consumer warpgroups. The producer's one thread keeps a ring of
// `stages` tiles of A and B full by TMA; consumers multiply each tile with wgmma, one step running while the
// next is issued, and hand the stage back. The grid is persistent: CTAs (or clusters of them) go over the tiles
// of C in a given order, so the ring runs on into the next tile while this one is stored. C goes from
// registers through epilogue tiles of shared memory to TMA stores. Where registers allow it the finished tile
// waits in C's own type, and its stores stand between the products of the next tile's first steps
// (overlapped_epilogue): the matrix units do not wait for them.
//
// Cooperative: every consumer warpgroup takes tile_m / consumer_warpgroups rows of each tile.
// Swapped (swap_ab): B's columns stand where wgmma wants rows, and A's rows where it wants columns, so that the sums
// are C^T: tile_m may be any multiple of 8, which fits a short M. Warpgroups divide tile_n, and the tile is turned on its
// way to shared memory.
// Ping-pong: two consumer warpgroups own alternate tiles, so one stores while the other multiplies.
// Cluster: CTAs in one column of tiles (cluster_m) share B, in one row (cluster_n) share A: each loads a
// slice and multicasts it.
// Split-K: a cluster's CTAs also stand in split_k parts, each of which sums its part of the K loop for the
// same tiles. At the end of a tile every CTA leaves its fp32 sums in its ring; then each part reads its share
// of the tile's columns from all parts, adds them in the order of the parts, and stores them. Neither timing
// nor the place of a CTA can change a bit of C.
//
// Groups (group_slots): A's and C's rows are divided among matrices of B by offsets that are read on the device; row_groups has them.
//
// In pieces: where tiles are few and K is deep, clusters take pieces of K of the same tile, and leave their sums in the
// workspace; the last one adds them up in the order of the pieces.
#pragma once

#include "kernels/matrix/consumer.cuh"
#include "kernels/matrix/load_tiled.cuh"
#include "kernels/matrix/producer.cuh"
#include "kernels/pipeline/roles.cuh"

namespace rooftile {

/// One thread readies the barriers for everybody in the cluster.
template <MatrixConfig C, class Load>
__device__ void set_up(const MatrixShared<C>& shared) {
    if (threadIdx.x == 0) {
        shared.ring.init(Load::fills, C.tile_warps() * C.peers());
        if constexpr (C.split_k > 1) {
            constexpr int warps = C.tile_warps() * C.cluster_ctas();
            shared.exchange().init(warps, warps);
        }
        if constexpr (C.dynamic_scheduler) shared.told().init();
        for (int i = 0; i < C.operand_barriers(); ++i)
            ptx::mbarrier_init(shared.operand_barrier(0, 0, 0) + i * MatrixConfig::barrier_bytes, 1);
        ptx::fence_mbarrier_init();
    }
    if constexpr (C.cluster_ctas() > 1) ptx::cluster_sync();
    else __syncthreads();
}

/// What every thread of a CTA does. `load_of(shared)` is fill_ring()'s load policy, of one thread or, where it says whole_warpgroup, of
/// all of the producer's; `fills`: its arrivals that fill a stage.
template <MatrixConfig C, class LoadOf, class Epilogue>
__device__ __forceinline__ void run_cta(const LoadOf& load_of, const TensorMap& map_c, const MoreTensorMaps& more, const MatrixArguments& args,
                                        const Epilogue& epilogue) {
    static_assert(obeys_the_hardware<C>());
    extern __shared__ __align__(MatrixConfig::tile_alignment) unsigned char memory[];
    const MatrixShared<C> shared{ptx::shared_address(memory)};
    // A swizzle counts rows from address bits: tiles that began elsewhere would be read wrongly.
    if (shared.base % MatrixConfig::tile_alignment != 0) __trap();
    using Load = decltype(load_of(shared));
    set_up<C, Load>(shared);
    // Launched as a programmatic dependent, all up to here ran beside the end of the kernel before; nothing
    // that it writes or reads is touched before the wait, but for B where early_weights says that it did not write that. The next kernel
    // may do the same as soon as an SM is free.
    if constexpr (C.early_weights)
        if (threadIdx.x == 0) ask_early<C>(args, shared, load_of(shared));
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if constexpr (C.grouped()) {
        if (threadIdx.x < 32) shared.groups().count(args);
        __syncthreads();
    }

    const int role = warpgroup();
    if (role == 0) {
        if (begin_producer<C.producer_registers>() || Load::whole_warpgroup) fill_ring<C>(args, shared, load_of(shared));
    } else {
        begin_consumer<C.consumer_registers>();
        if constexpr (C.overlapped_epilogue) consume_overlapped<C>(map_c, args, shared, role - 1);
        else consume<C>(map_c, more, args, shared, role - 1, epilogue);
    }
    // No CTA may leave while a peer can still arrive on its barriers or multicast into its stages.
    if constexpr (C.cluster_ctas() > 1) {
        __syncwarp();
        ptx::cluster_sync();
    }
}

}  // namespace rooftile
