// The producer of sm90_gemm: tiles of A and B into the ring by TMA.
#pragma once

#include "kernels/gemm/sm90_gemm_layout.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// One operand's tile [extent][tile_k] of the stage at `shared`. With `peers` CTAs sharing it, this CTA loads
/// slice `slice` of the MN extent and sends it to all of `ctas`; nothing where the first `slices` are all
/// that reach into the operand. What is not loaded holds anything at all: it meets only rows and columns
/// beyond C. `matrix`: of the operand, where there is a batch of them.
template <Sm90GemmConfig C, Major major, int extent, int peers>
__device__ void load_operand(const TensorMap& map, unsigned shared, unsigned barrier, int mn, int k,
                             int matrix, int slice, int slices, unsigned short ctas, unsigned long long policy) {
    constexpr int slice_extent = extent / peers;
    if constexpr (peers == 1) slice = 0;
    else if (major == Major::k && slice >= slices) return;
    mn += slice * slice_extent;
    const auto load = [&](unsigned to, int x, int y) {
        if constexpr (C.batched && peers == 1 && C.load_policy)
            ptx::tma_load_3d(to, map, x, y, matrix, barrier, policy);
        else if constexpr (C.batched && peers == 1) ptx::tma_load_3d(to, map, x, y, matrix, barrier);
        else if constexpr (C.batched && C.load_policy)
            ptx::tma_load_3d_multicast(to, map, x, y, matrix, barrier, ctas, policy);
        else if constexpr (C.batched) ptx::tma_load_3d_multicast(to, map, x, y, matrix, barrier, ctas);
        else if constexpr (peers == 1 && C.load_policy) ptx::tma_load_2d(to, map, x, y, barrier, policy);
        else if constexpr (peers == 1) ptx::tma_load_2d(to, map, x, y, barrier);
        else if constexpr (C.load_policy) ptx::tma_load_2d_multicast(to, map, x, y, barrier, ctas, policy);
        else ptx::tma_load_2d_multicast(to, map, x, y, barrier, ctas);
    };
    if constexpr (major == Major::k) {
        load(shared + slice * slice_extent * Sm90GemmConfig::swizzle_bytes, k, mn);  // [slice_extent][tile_k]
    } else {
        // Unrolled, a box's places in shared memory and in the operand are held for all of them: more than so few registers take.
        constexpr int unrolled = C.producer_registers < 40 ? 1 : 4;
#pragma unroll unrolled
        for (int i = 0; i < slice_extent / 64; ++i)
            load(shared + (slice * slice_extent / 64 + i) * C.mn_box_bytes(), mn + 64 * i,
                 k);  // [64 k][64 mn]
    }
}

/// The same of B where its columns are pairs: by a box of four axes, K, a step of gates or ups, the two, steps.
template <Sm90GemmConfig C>
__device__ void load_pairs(const TensorMap& map, unsigned shared, unsigned barrier, int n, int k, int matrix, int slice, int slices,
                           unsigned short ctas, unsigned long long policy) {
    constexpr int slice_extent = C.tile_n / C.cluster_m;
    if constexpr (C.cluster_m == 1) slice = 0;
    else if (slice >= slices) return;
    const int step = (n + slice * slice_extent) / (2 * Sm90GemmConfig::pair_step);
    const unsigned to = shared + slice * slice_extent * Sm90GemmConfig::swizzle_bytes;
    ptx::tma_load_pairs<C.batched, (C.cluster_m > 1), C.load_policy>(to, map, k, step, matrix, barrier, ctas, policy);
}

/// Tensors beside A and B that the kernel reads by TMA, each only where the configuration says so.
struct Sm90MoreMaps {
    const TensorMap& operand;           ///< operand_staged
    const TensorMap &a_scale, &b_scale;  ///< block_scales: [k / 128][m], and [n / 128][k / 128]
    const TensorMap &second, &third;     ///< results
};

/// A stage's scales. TMA takes a box that begins at a multiple of 16 bytes of its row, and no other: of B's scales it brings the four
/// of which one is the block's.
template <Sm90GemmConfig C>
__device__ void load_scales(const Sm90MoreMaps& maps, const Sm90Shared<C>& shared, int stage, const TileOrigin& at, int block) {
    const unsigned full = shared.ring.full(stage);
    ptx::tma_load_2d(shared.a_scales(stage), maps.a_scale, at.m, block, full);
    ptx::tma_load_2d(shared.b_scales(stage), maps.b_scale, block - block % Sm90GemmConfig::scales_a_box, at.n / Sm90GemmConfig::scale_block, full);
}

/// The producer, one thread: every stage of every tile of this CTA, as soon as the consumers hand one back.
template <Sm90GemmConfig C>
__device__ void produce(const TensorMap& map_a, const TensorMap& map_b, [[maybe_unused]] const Sm90MoreMaps& more,
                        const GemmArguments& args, const Sm90Shared<C>& shared) {
    RingPosition<C.stages> at;
    Sm90TileScheduler<C, Sm90Role::producer> scheduler(args, shared);
    const Sm90Blocks<C> k(args, scheduler);
    // A ring's stages before a tile's end: the answer is there in time, and nobody holds a tile long before it begins.
    [[maybe_unused]] const int asks_at = k.first + max(0, k.count - C.stages);
    const unsigned short everyone = ((1 << C.peers()) - 1) << scheduler.part * C.peers();
    [[maybe_unused]] unsigned turn = 1;  // of the exchange's one stage: nothing to wait for before the first tile
    for (; scheduler.tiles.more(); scheduler.tiles.advance()) {
        const TileOrigin at_c = scheduler.origin();
        // The last tile's sums lie in the ring until the whole cluster has read them.
        if constexpr (C.split_k > 1) ptx::mbarrier_wait(shared.exchange().empty(0), turn);
        turn ^= 1;
        for (int block = k.first; block < k.first + k.count; ++block, at.advance()) {
            if constexpr (C.dynamic_scheduler)
                if (block == asks_at) scheduler.tiles.ask();
            shared.ring.acquire(at);
            const unsigned full = shared.ring.full(at.stage);
            if constexpr (C.ablated == Ablation::loads) {  // the producer's arrival alone completes the phase
                ptx::mbarrier_arrive(full);
                continue;
            }
            shared.ring.expect(at.stage, args.stage_bytes);
            if constexpr (C.block_scales) load_scales<C>(more, shared, at.stage, at_c, block);
            load_operand<C, C.a_major, C.tile_m, C.cluster_n>(map_a, shared.a(at.stage), full, at_c.m,
                                                              block * C.tile_k, at_c.batch * args.a_step, scheduler.rank, args.a_slices,
                                                              everyone, args.a_policy);
            if constexpr (C.pairs)
                load_pairs<C>(map_b, shared.b(at.stage), full, at_c.n, block * C.tile_k, at_c.batch * args.b_step, scheduler.rank,
                              args.b_slices, everyone, args.b_policy);
            else
                load_operand<C, C.b_major, C.tile_n, C.cluster_m>(map_b, shared.b(at.stage), full, at_c.n,
                                                                  block * C.tile_k, at_c.batch * args.b_step, scheduler.rank, args.b_slices,
                                                                  everyone, args.b_policy);
        }
    }
}

}  // namespace rooftile
