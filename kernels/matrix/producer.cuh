// The producer: every stage of every tile of this CTA, as soon as the consumers hand one back. What a stage is made of, and by how many
// threads, is the load policy's: load_tiled.cuh has TMA boxes.
#pragma once

#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace rooftile {

/// Blocks of the first tile whose B is asked for early: those that the ring has stages for.
template <MatrixConfig C>
__device__ int early_blocks(const KBlocks<C>& k) {
    return min(k.count, C.stages);
}

/// Of policies that count on from block to block: the first block of a tile, and the one after the last that was loaded.
template <class Load, class Scheduler>
__device__ void begin_tile(Load& load, const Scheduler& scheduler, const TileOrigin& at_c, int block) {
    if constexpr (requires { load.begin(scheduler, at_c, block); }) load.begin(scheduler, at_c, block);
}
template <class Load>
__device__ void next_block(Load& load) {
    if constexpr (requires { load.advance(); }) load.advance();
}

/// With early_weights, by one thread before the wait for the kernel in front: B of the first tile's blocks, which fill_ring() completes.
template <MatrixConfig C, class Load>
__device__ void ask_early(const MatrixArguments& args, const MatrixShared<C>& shared, Load load) {
    const MatrixTileScheduler<C, MatrixRole::producer> scheduler(args, shared);
    const KBlocks<C> blocks(args, scheduler);
    const TileOrigin at_c = scheduler.origin();
    begin_tile(load, scheduler, at_c, blocks.first);
    for (int stage = 0; stage < early_blocks(blocks); ++stage, next_block(load)) {
        load.expect(stage);
        load.load_b(scheduler, stage, at_c, blocks.first + stage);
    }
}

/// load(scheduler, stage, origin of the tile, block of K) fills a stage that may be filled: as many arrivals on its full barrier as the
/// ring was readied for.
template <MatrixConfig C, class Load>
__device__ void fill_ring(const MatrixArguments& args, const MatrixShared<C>& shared, Load load) {
    RingPosition<C.stages> at;
    MatrixTileScheduler<C, MatrixRole::producer> scheduler(args, shared);
    const KBlocks<C> k(args, scheduler);
    // A ring's stages before a tile's end: the answer is there in time, and nobody holds a tile long before it begins.
    [[maybe_unused]] const int asks_at = k.first + max(0, k.count - C.stages);
    [[maybe_unused]] int asked = 0;  // blocks whose B ask_early() has asked for
    if constexpr (C.early_weights) asked = early_blocks(k);
    [[maybe_unused]] unsigned turn = 1;  // of the exchange's one stage: nothing to wait for before the first tile
    for (; scheduler.tiles.more(); scheduler.tiles.advance()) {
        const TileOrigin at_c = scheduler.origin();
        // The last tile's sums lie in the ring until the whole cluster has read them.
        if constexpr (C.split_k > 1) ptx::mbarrier_wait(shared.exchange().empty(0), turn);
        turn ^= 1;
        begin_tile(load, scheduler, at_c, k.first);
        for (int block = k.first; block < k.first + k.count; ++block, at.advance(), next_block(load)) {
            if constexpr (C.dynamic_scheduler)
                if (block == asks_at) scheduler.tiles.ask();
            if constexpr (C.early_weights) {
                if (asked > 0) {
                    --asked;
                    load.load_a(scheduler, at.stage, at_c, block);
                    continue;
                }
            }
            shared.ring.acquire(at);
            load(scheduler, at.stage, at_c, block);
        }
    }
}

}  // namespace rooftile
