// The consumers: a warpgroup's part of every tile, from the first product to the store.
#pragma once

#include "kernels/matrix/epilogue.cuh"
#include "kernels/matrix/main_loop.cuh"
#include "kernels/matrix/split_k_cluster.cuh"
#include "kernels/matrix/split_k_workspace.cuh"
#include "kernels/matrix/store.cuh"
#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"

namespace rooftile {

/// All tiles of one consumer warpgroup, each stored when its products are done.
template <MatrixConfig C, class Epilogue>
__device__ void consume(const TensorMap& map_c, const MoreTensorMaps& more, const MatrixArguments& args,
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
        [[maybe_unused]] int scales_begin = 0;
        if constexpr (C.block_scales && C.grouped()) scales_begin = scheduler.origin().m % C.scales_a_box;
        if constexpr (C.promoted) promoted_step<C>(sums, shared, at, first_row, scheduler.part, k.first, scales_begin);
        else step<C>(sums, shared, at, previous, first_row, scheduler.part, true);
        const TileOrigin tile = scheduler.origin();  // beside the first products
        prefetch_operands<C>(epilogue, args, tile.template result<C>());
        if constexpr (C.operand_staged) begin_operand<C>(target, tile.moved(down, right).template result<C>());
        for (int block = 1; block < k_blocks; ++block) {
            if constexpr (C.promoted) promoted_step<C>(sums, shared, at, first_row, scheduler.part, k.first + block, scales_begin);
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
    if (C.stores_rows() || (C.tma_store && ptx::elect_one())) ptx::tma_store_wait_read<0>();
}

/// The same with overlapped_epilogue: the epilogue tiles of the tile before go out between this tile's first steps.
template <MatrixConfig C>
__device__ void consume_overlapped(const TensorMap& map_c, const MatrixArguments& args,
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

}  // namespace rooftile
