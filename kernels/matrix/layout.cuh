// What the roles of a matrix kernel share: the rules of the hardware, the layout of shared memory, where tiles are. A kernel's
// configuration C is what changes registers, shared memory or instructions.
#pragma once

#include "kernels/matrix/matrix_arguments.hpp"
#include "kernels/matrix/matrix_config.hpp"
#include "kernels/matrix/row_groups.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <MatrixConfig C>
constexpr bool obeys_the_hardware() {
    static_assert(C.mma_m() % C.wgmma_m == 0, "a wgmma has 64 rows");
    static_assert(C.warpgroup_m() % C.wgmma_m == 0, "each warpgroup owns whole wgmmas");
    static_assert(C.mma_n() % (C.swap_ab ? 8 : 16) == 0 && C.mma_n() <= 256,
                  "wgmma N, in steps that stmatrix.x4 stores; a turned tile stores by x2 what is left");
    static_assert(C.tile_k * C.operand_bytes() == C.swizzle_bytes,
                  "a row of a k-major tile is one 128-byte swizzle span");
    static_assert(C.a_major == Major::k || C.tile_m % (64 * C.cluster_n) == 0, "an m-major box is 64 wide");
    static_assert(C.b_major == Major::k || C.tile_n % (64 * C.cluster_m) == 0, "an n-major box is 64 wide");
    static_assert(C.tile_n % (8 * C.cluster_m) == 0 && C.tile_m % (8 * C.cluster_n) == 0,
                  "slices of a swizzled tile begin at whole atoms of 8 rows");
    static_assert(C.schedule == Schedule::cooperative || C.consumer_warpgroups == 2, "ping-pong is for two");
    static_assert(C.cluster_m == 1 || C.cluster_n == 1, "a cluster shares one operand");
    static_assert(C.cluster_ctas() <= 8, "the largest portable cluster");
    static_assert(C.split_k == 1 || C.schedule == Schedule::cooperative,
                  "the parts' sums take the whole ring");
    static_assert(!C.in_pieces || (C.schedule == Schedule::cooperative && C.ctas_per_sm == 1 && !C.overlapped_epilogue),
                  "pieces of K: one tile a CTA, whose sums are done when it is");
    static_assert(!C.grouped() || (C.batched && !C.in_pieces && C.group_slots % 32 == 0 && C.group_slots <= C.max_groups),
                  "groups of rows: a warp counts them, how many tiles there are is known on the device alone");
    static_assert(!C.dynamic_scheduler || (C.batched && !C.in_pieces), "a counter of tiles: of several products, of which a CTA has several tiles");
    static_assert(C.told_bytes() == 0 || C.told_bytes() == TileSchedulerPipeline<C.told_tiles()>::bytes(), "the planner counts what roles hear of");
    static_assert(!C.early_weights || !(C.grouped() || C.dynamic_scheduler || C.block_scales),
                  "before the wait nothing on the device says which tile is first, and a stage is B and A alone");
    static_assert(C.split_k == 1 || C.mma_n() % (8 * C.split_k) == 0, "each part stores whole 8x8 matrices");
    static_assert(!C.tma_store || C.swap_ab || C.stored_n() % C.epilogue_columns() == 0,
                  "whole epilogue tiles");
    static_assert(
        !C.tma_store || !C.wide_epilogue_tiles()
            || (C.epilogue_columns() % 32 == 16 && C.split_k == 1 && C.result_bytes() == 2),
        "rows of an odd number of sectors; sums of parts come row by row of both halves; written by matrices of 16 bits");
    static_assert(!C.operand_staged || (C.tma_store && C.result_bytes() == 2 && !C.adds_up() && !C.grouped()),
                  "the operand lies where C goes, element for element, and is asked for while a CTA multiplies");
    static_assert(!C.pairs || (C.b_major == Major::k && (!C.swap_ab || C.tma_store) && !C.block_scales
                               && (C.swap_ab || C.share_n() % (2 * C.pair_step) == 0) && C.tile_n % (2 * C.pair_step * C.cluster_m) == 0),
                  "gates and ups come by rows of K, and a part of K or of a cluster has whole pairs of steps");
    static_assert(C.results >= 1 && C.results <= C.max_results && (C.results == 1 || (!C.operand_staged && !C.grouped())),
                  "of several results each has its tensor map, and none an operand's place");
    static_assert(C.exchange_bytes() <= C.stages * C.stage_bytes(), "the ring holds a tile's fp32 sums");
    static_assert(
        !C.overlapped_epilogue
            || (C.schedule == Schedule::cooperative && C.split_k == 1 && C.tma_store && C.result_bytes() == 2),
        "an overlapped epilogue needs its warpgroup on every tile, whole sums, TMA, and half the registers for what waits");
    static_assert(C.operand_bytes() == bytes_of(C.b_type) && C.operand_bytes() <= 2 && (C.result_bytes() > 1 || !C.swap_ab),
                  "types of this kernel");
    static_assert(!C.tma_store || C.epilogue_columns() * C.result_bytes() >= C.tma_bytes, "a box has 16 B of a row");
    static_assert(!C.promoted || (is_fp8(C.type) && C.schedule == Schedule::cooperative && !C.overlapped_epilogue),
                  "one warpgroup promotes its sums beside another's products");
    static_assert(!C.block_scales || (C.promoted && !C.swap_ab && C.tile_k == C.scale_block
                                      && (C.tile_n % C.scale_block == 0 || C.scale_block % C.tile_n == 0)),
                  "a stage is one block of K, and a wgmma's columns fall into whole blocks of B or into one");
    static_assert(C.all_barrier_bytes() - C.operand_barriers() * C.barrier_bytes
                      == Ring<C.stages>::bytes() + (C.split_k > 1 ? Ring<1>::bytes() : 0),
                  "the planner counts the barriers of both rings");
    static_assert(C.threads() <= 1024 && C.stages >= 2, "CTA size; a ring needs two stages");
    return true;
}

/// Of positive integers, without the sum that overflows near 2^31.
__device__ inline int ceil_div(int x, int y) { return (x - 1) / y + 1; }

// Named barriers; 0 is __syncthreads.
inline constexpr int store_barrier = 1;  ///< and the next two, one a warpgroup: a transposed epilogue tile
inline constexpr int order_barrier = 4;  ///< and the next: ping-pong's "your turn to multiply"
inline constexpr int ring_barrier = 6;  ///< split-K: "no wgmma reads the ring any more"

/// Shared memory: stages of A then B, epilogue tiles, scales of each stage, barriers.
template <MatrixConfig C>
struct MatrixShared {
    unsigned base;
    __device__ unsigned a(int stage) const { return base + stage * C.stage_pitch(); }
    __device__ unsigned b(int stage) const { return a(stage) + C.a_bytes(); }
    __device__ unsigned epilogue_tile(int warpgroup, int i) const {
        return base + C.stages * C.stage_pitch()
               + warpgroup * (C.epilogue_bytes() / C.consumer_warpgroups) + i * C.epilogue_tile_bytes();
    }
    /// Stages of A and B, from the producer to the consumers. A member, not a function: from a temporary the
    /// compiler orders the registers of the loops otherwise, and kernels differ.
    Ring<C.stages> ring{base + C.stages * C.stage_pitch() + C.epilogue_bytes() + C.stages * C.scale_bytes()};
    __device__ unsigned a_scales(int stage) const {
        return base + C.stages * C.stage_pitch() + C.epilogue_bytes() + stage * C.scale_bytes();
    }
    __device__ unsigned b_scales(int stage) const { return a_scales(stage) + C.a_scale_bytes(); }
    /// Split-K, a lap a tile. Full: all sums of the cluster are written; empty: all are read. Its roles keep the
    /// lap's parity alone (`turn`): with RingPosition<1> the compiler orders the loops otherwise.
    __device__ Ring<1> exchange() const { return {ring.barriers + Ring<C.stages>::bytes()}; }
    __device__ RowGroups<C> groups() const { return {ring.barriers + C.all_barrier_bytes()}; }
    /// With dynamic_scheduler.
    __device__ TileSchedulerPipeline<C.told_tiles()> told() const { return {ring.barriers + C.all_barrier_bytes() + C.group_bytes()}; }
    /// Full of epilogue tile `i` of a warpgroup, as far as `warp` fills it with an epilogue's operand.
    __device__ unsigned operand_barrier(int warpgroup, int i, int warp) const {
        const int tile = warpgroup * C.epilogue_tiles_in_flight + i;
        return ring.barriers + Ring<C.stages>::bytes() + (C.swap_ab ? tile : tile * 4 + warp) * C.barrier_bytes;
    }
};

/// Tensors beside A and B that the kernel reads by TMA, each only where the configuration says so.
struct MoreTensorMaps {
    const TensorMap& operand;           ///< operand_staged
    const TensorMap &a_scale, &b_scale;  ///< block_scales: [k / 128][m], and [n / 128][k / 128] of each group
    const TensorMap &second, &third;     ///< results
};

/// Where a CTA's tile of C lies: its first element, and which product of a batch, or group, it is of.
struct TileOrigin {
    int m, n, batch;
    int end = 0;  ///< of a group: the row behind its last
    __device__ TileOrigin moved(int down, int right) const { return {m + down, n + right, batch, end}; }
    /// Where what becomes of it lies in C.
    template <MatrixConfig C>
    __device__ TileOrigin result() const { return {m, C.result_columns(n), batch, end}; }
};

}  // namespace rooftile
