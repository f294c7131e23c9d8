// C[M x N] = A[M x K] * B[K x N] on Hopper: bf16 or fp16 in and out, fp32 sums; or a batch of such products.
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
// Groups (group_slots): A's and C's rows are divided among matrices of B by offsets that are read on the device; _groups has them.
//
// In pieces: where tiles are few and K is deep, clusters take pieces of K of the same tile, and leave their sums in the
// workspace; the last one adds them up in the order of the pieces.
//
// Here are the consumers and the kernel. kernels/matrix/ has the rest: layout of shared memory and tile scheduler, producer and its TMA boxes,
// main loop, stores, split-K in a cluster and through a workspace, a caller's expression between accumulators and store.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/gemm_config.hpp"
#include "kernels/matrix/epilogue.cuh"
#include "kernels/matrix/load_tiled.cuh"
#include "kernels/matrix/main_loop.cuh"
#include "kernels/matrix/producer.cuh"
#include "kernels/matrix/split_k_cluster.cuh"
#include "kernels/matrix/split_k_workspace.cuh"
#include "kernels/matrix/store.cuh"
#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"

namespace rooftile {

/// All tiles of one consumer warpgroup, each stored when its products are done.
template <Sm90GemmConfig C, class Epilogue>
__device__ void consume(const TensorMap& map_c, const MoreTensorMaps& more, const GemmArguments& args,
                        const MatrixShared<C>& shared, int warpgroup, const Epilogue& epilogue) {
    constexpr bool pingpong = C.schedule == Schedule::pingpong;
    const int first_row = pingpong ? 0 : warpgroup * C.warpgroup_m();
    const int down = C.swap_ab ? 0 : first_row,
              right = C.swap_ab ? first_row : 0;  // of the tile's first element
    [[maybe_unused]] const OrderedSequenceBarrier<2, order_barrier> order{warpgroup};
    RingPosition<C.stages> at;
    MatrixTileScheduler<C> scheduler(args, shared);
    const KBlocks<C> k(args, scheduler);
    const int k_blocks = k.count;
    StoreTarget<C> target{.map_c = map_c, .shared = shared, .args = args, .warpgroup = warpgroup, .map_operand = more.operand,
                         .map_second = more.second, .map_third = more.third};
    [[maybe_unused]] unsigned turn = 0;
    if (pingpong && warpgroup == 1) {  // the second tile is this warpgroup's first
        at.skip(k_blocks);
        scheduler.tiles.advance();
    }
    for (bool first = true; scheduler.tiles.more(); first = false) {
        if (pingpong) order.wait(first);
        Accumulators<C> sums;
        if constexpr (C.adds_up() || C.promoted) clear<C>(sums);
        int previous = 0;
        if constexpr (C.promoted) promoted_step<C>(sums, shared, at, first_row, scheduler.part, k.first);
        else step<C>(sums, shared, at, previous, first_row, scheduler.part, true);
        const TileOrigin tile = scheduler.origin();  // beside the first products
        prefetch_operands<C>(epilogue, args, tile.template result<C>());
        if constexpr (C.operand_staged) begin_operand<C>(target, tile.moved(down, right).template result<C>());
        for (int block = 1; block < k_blocks; ++block) {
            if constexpr (C.promoted) promoted_step<C>(sums, shared, at, first_row, scheduler.part, k.first + block);
            else step<C>(sums, shared, at, previous, first_row, scheduler.part, false);
        }
        // The other's products line up behind the last of these, which are still running.
        if (pingpong && scheduler.tiles.more_after_this()) order.pass();
        if constexpr (!C.promoted) drain<C>(sums, shared, previous, scheduler.part);
        if constexpr (C.in_pieces) {
            const SumsOfPieces<C> pieces(args, scheduler, warpgroup);
            if constexpr (C.split_k > 1) {
                publish<C>(sums, shared, turn);
                pieces.leave(SumsOfParts<C>(shared, scheduler));
            } else {
                pieces.leave(OwnSums<C>{sums});
            }
            if (pieces.came_last()) {
                pieces.add_up(sums);
                const int share = scheduler.part * C.share_n();
                store_finished<C>(epilogue, OwnSums<C>{sums}, target, args,
                                  tile.moved(C.swap_ab ? share : down, C.swap_ab ? right : share));
            }
        } else if constexpr (C.split_k > 1) {
            publish<C>(sums, shared, turn);
            turn ^= 1;
            const int share = scheduler.part * C.share_n();
            store_finished<C>(epilogue, SumsOfParts<C>(shared, scheduler), target, args,
                              tile.moved(C.swap_ab ? share : down, C.swap_ab ? right : share));
            end_exchange<C>(shared);
        } else {
            store_finished<C>(epilogue, OwnSums<C>{sums}, target, args, tile.moved(down, right));
        }
        scheduler.tiles.advance();
        if (pingpong) {  // over the other warpgroup's tile
            at.skip(k_blocks);
            scheduler.tiles.advance();
        }
    }
    if (C.tma_store && ptx::elect_one()) ptx::tma_store_wait_read<0>();
}

/// The same with overlapped_epilogue: the epilogue tiles of the tile before go out between this tile's first steps.
template <Sm90GemmConfig C>
__device__ void consume_overlapped(const TensorMap& map_c, const GemmArguments& args,
                                   const MatrixShared<C>& shared, int warpgroup) {
    const int first_row = warpgroup * C.warpgroup_m();
    RingPosition<C.stages> at;
    MatrixTileScheduler<C> scheduler(args, shared);
    const int k_blocks = KBlocks<C>(args, scheduler).count;
    StoreTarget<C> target{map_c, shared, args, warpgroup};
    KeptSums<C> kept;
    if constexpr (C.grouped())
        if (!scheduler.tiles.more()) return;  // groups may have fewer tiles than the grid has CTAs
    for (bool first = true; scheduler.tiles.more(); scheduler.tiles.advance(), first = false) {
        Accumulators<C> sums;
        int previous = 0, block = 0;
        TileOrigin tile{};
#pragma unroll
        for (int s = 0; s < C.epilogue_tiles(); ++s) {
            if (block < k_blocks) step<C>(sums, shared, at, previous, first_row, scheduler.part, s == 0);
            ++block;
            if (s == 0) tile = scheduler.origin();
            if (!first) store_epilogue_tile<C>(kept, target, s);
        }
        for (; block < k_blocks; ++block)
            step<C>(sums, shared, at, previous, first_row, scheduler.part, false);
        drain<C>(sums, shared, previous, scheduler.part);
        kept.keep(sums);
        target.at = tile.moved(C.swap_ab ? 0 : first_row, C.swap_ab ? first_row : 0);
    }
    store_by_tma<C>(kept, target);  // a CTA of the grid has one tile at least
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
}

/// One thread readies the barriers for everybody in the cluster.
template <Sm90GemmConfig C>
__device__ void set_up(const MatrixShared<C>& shared) {
    if (threadIdx.x == 0) {
        shared.ring.init(1, C.tile_warps() * C.peers());
        if constexpr (C.split_k > 1) {
            constexpr int warps = C.tile_warps() * C.cluster_ctas();
            shared.exchange().init(warps, warps);
        }
        if constexpr (C.dynamic_scheduler) shared.told().init();
        for (int i = 0; i < C.operand_barriers(); ++i)
            ptx::mbarrier_init(shared.operand_barrier(0, 0, 0) + i * Sm90GemmConfig::barrier_bytes, 1);
        ptx::fence_mbarrier_init();
    }
    if constexpr (C.cluster_ctas() > 1) ptx::cluster_sync();
    else __syncthreads();
}

/// What every thread of a CTA does.
template <Sm90GemmConfig C, class Epilogue>
__device__ __forceinline__ void run_cta(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_c,
                                        const MoreTensorMaps& more, const GemmArguments& args, const Epilogue& epilogue) {
    static_assert(obeys_the_hardware<C>());
    extern __shared__ __align__(Sm90GemmConfig::tile_alignment) unsigned char memory[];
    const MatrixShared<C> shared{ptx::shared_address(memory)};
    // A swizzle counts rows from address bits: tiles that began elsewhere would be read wrongly.
    if (shared.base % Sm90GemmConfig::tile_alignment != 0) __trap();
    set_up<C>(shared);
    // Launched as a programmatic dependent, all up to here ran beside the end of the kernel before; nothing
    // that it writes or reads is touched before the wait. The next kernel may do the same as soon as an SM is
    // free.
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if constexpr (C.grouped()) {
        if (threadIdx.x < 32) shared.groups().count(args);
        __syncthreads();
    }

    const int role = warpgroup();
    if (role == 0) {
        if (begin_producer<C.producer_registers>()) fill_ring<C>(args, shared, TiledLoad<C>{map_a, map_b, more, args, shared});
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

template <Sm90GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args) {
    run_cta<C>(map_a, map_b, map_c, {map_c, map_c, map_c, map_c, map_c}, args, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums; `map_operand` is read with operand_staged alone.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_epilogue(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                       const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                       const __grid_constant__ TensorMap map_operand, const __grid_constant__ Epilogue epilogue) {
    static_assert(!C.overlapped_epilogue, "what waits to be stored is finished");
    run_cta<C>(map_a, map_b, map_c, {map_operand, map_c, map_c, map_c, map_c}, args, epilogue);
}

/// The same with block_scales.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_scaled(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                     const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                     const __grid_constant__ TensorMap map_operand, const __grid_constant__ TensorMap map_a_scale,
                     const __grid_constant__ TensorMap map_b_scale, const __grid_constant__ Epilogue epilogue) {
    run_cta<C>(map_a, map_b, map_c, {map_operand, map_a_scale, map_b_scale, map_c, map_c}, args, epilogue);
}

/// The same with several results.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_results(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                      const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                      const __grid_constant__ TensorMap map_second, const __grid_constant__ TensorMap map_third,
                      const __grid_constant__ Epilogue epilogue) {
    run_cta<C>(map_a, map_b, map_c, {map_c, map_c, map_c, map_second, map_third}, args, epilogue);
}

}  // namespace rooftile
