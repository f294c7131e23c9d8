// Tiles of A and B into the ring by TMA boxes, which CTAs of a cluster multicast to each other.
#pragma once

#include "kernels/matrix/tile_scheduler.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// One operand's tile [extent][tile_k] of the stage at `shared`. With `peers` CTAs sharing it, this CTA loads
/// slice `slice` of the MN extent and sends it to all of `ctas`; nothing where the first `slices` are all
/// that reach into the operand. What is not loaded holds anything at all: it meets only rows and columns
/// beyond C. `matrix`: of the operand, where there is a batch of them.
template <MatrixConfig C, Major major, int extent, int peers>
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
        load(shared + slice * slice_extent * C.swizzle_bytes, k, mn);  // [slice_extent][tile_k]
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
template <MatrixConfig C>
__device__ void load_pairs(const TensorMap& map, unsigned shared, unsigned barrier, int n, int k, int matrix, int slice, int slices,
                           unsigned short ctas, unsigned long long policy) {
    constexpr int slice_extent = C.tile_n / C.cluster_m;
    if constexpr (C.cluster_m == 1) slice = 0;
    else if (slice >= slices) return;
    const int step = (n + slice * slice_extent) / (2 * C.pair_step);
    const unsigned to = shared + slice * slice_extent * C.swizzle_bytes;
    ptx::tma_load_pairs<C.batched, (C.cluster_m > 1), C.load_policy>(to, map, k, step, matrix, barrier, ctas, policy);
}

/// A stage's scales. TMA takes a box that begins at a multiple of 16 bytes of its row, and no other: of B's scales it brings the four
/// of which one is the block's; of a group's of A from up to three rows before its own on.
template <MatrixConfig C>
__device__ void load_scales(const MoreTensorMaps& maps, const MatrixShared<C>& shared, int n, int stage, const TileOrigin& at, int block) {
    const unsigned full = shared.ring.full(stage);
    const int row = C.grouped() ? at.m - at.m % C.scales_a_box : at.m,
              line = at.n / C.scale_block + (C.grouped() ? at.batch * ceil_div(n, C.scale_block) : 0);
    ptx::tma_load_2d(shared.a_scales(stage), maps.a_scale, row, block, full);
    ptx::tma_load_2d(shared.b_scales(stage), maps.b_scale, block - block % C.scales_a_box, line, full);
}

/// Brings a stage of both operands, and of their scales: the load policy of fill_ring(), of one thread.
template <MatrixConfig C>
struct TiledLoad {
    static constexpr unsigned fills = 1;
    static constexpr bool whole_warpgroup = false;
    const TensorMap &map_a, &map_b;
    MoreTensorMaps more;
    const MatrixArguments& args;
    const MatrixShared<C>& shared;

    /// Of the scheduler it reads the CTA's rank and part in the cluster.
    template <class Scheduler>
    __device__ void operator()(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int block) const {
        if constexpr (C.ablated == Ablation::loads) {  // the producer's arrival alone completes the phase
            ptx::mbarrier_arrive(shared.ring.full(stage));
            return;
        }
        expect(stage);
        if constexpr (C.block_scales) load_scales<C>(more, shared, args.n, stage, at_c, block);
        load_a(scheduler, stage, at_c, block);
        load_b(scheduler, stage, at_c, block);
    }
    /// The stage is full when all of its bytes have come, in whatever order they are asked for.
    __device__ void expect(int stage) const { shared.ring.expect(stage, args.stage_bytes); }
    template <class Scheduler>
    __device__ void load_a(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int block) const {
        load_operand<C, C.a_major, C.tile_m, C.cluster_n>(map_a, shared.a(stage), shared.ring.full(stage), at_c.m,
                                                          block * C.tile_k, at_c.batch * args.a_step, scheduler.rank, args.a_slices,
                                                          everyone(scheduler), args.a_policy);
    }
    template <class Scheduler>
    __device__ void load_b(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int block) const {
        const unsigned full = shared.ring.full(stage);
        if constexpr (C.pairs)
            load_pairs<C>(map_b, shared.b(stage), full, at_c.n, block * C.tile_k, at_c.batch * args.b_step, scheduler.rank,
                          args.b_slices, everyone(scheduler), args.b_policy);
        else
            load_operand<C, C.b_major, C.tile_n, C.cluster_m>(map_b, shared.b(stage), full, at_c.n, block * C.tile_k,
                                                              at_c.batch * args.b_step, scheduler.rank, args.b_slices, everyone(scheduler),
                                                              args.b_policy);
    }
    /// CTAs of the cluster that sum the same part of K.
    template <class Scheduler>
    __device__ static unsigned short everyone(const Scheduler& scheduler) {
        return ((1 << C.peers()) - 1) << scheduler.part * C.peers();
    }
};

}  // namespace rooftile
