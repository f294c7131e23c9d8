// What the roles of sm90_gemm share: the rules of the hardware, the layout of shared memory, the tile scheduler over the
// tiles of C, and the blocks of the K loop.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/sm90_gemm_config.hpp"
#include "kernels/gemm/sm90_gemm_groups.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/pipeline/tile_order.cuh"
#include "kernels/ptx/load.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <Sm90GemmConfig C>
constexpr bool obeys_the_hardware() {
    static_assert(C.mma_m() % Sm90GemmConfig::wgmma_m == 0, "a wgmma has 64 rows");
    static_assert(C.warpgroup_m() % Sm90GemmConfig::wgmma_m == 0, "each warpgroup owns whole wgmmas");
    static_assert(C.mma_n() % (C.swap_ab ? 8 : 16) == 0 && C.mma_n() <= 256,
                  "wgmma N, in steps that stmatrix.x4 stores; a turned tile stores by x2 what is left");
    static_assert(C.tile_k * C.operand_bytes() == Sm90GemmConfig::swizzle_bytes,
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
    static_assert(!C.grouped() || (C.batched && !C.in_pieces && C.group_slots % 32 == 0 && C.group_slots <= Sm90GemmConfig::max_groups),
                  "groups of rows: a warp counts them, how many tiles there are is known on the device alone");
    static_assert(!C.dynamic_scheduler || (C.batched && !C.in_pieces), "a counter of tiles: of several products, of which a CTA has several tiles");
    static_assert(C.told_bytes() == 0 || C.told_bytes() == ToldTiles<C.told_tiles()>::bytes(), "the planner counts what roles hear of");
    static_assert(C.split_k == 1 || C.mma_n() % (8 * C.split_k) == 0, "each part stores whole 8x8 matrices");
    static_assert(!C.tma_store || C.swap_ab || C.stored_n() % C.epilogue_columns() == 0,
                  "whole epilogue tiles");
    static_assert(
        !C.tma_store || !C.wide_epilogue_tiles()
            || (C.epilogue_columns() % 32 == 16 && C.split_k == 1 && C.result_bytes() == 2),
        "rows of an odd number of sectors; sums of parts come row by row of both halves; written by matrices of 16 bits");
    static_assert(!C.operand_staged || (C.tma_store && C.result_bytes() == 2 && !C.adds_up()),
                  "the operand lies where C goes, element for element, and is asked for while a CTA multiplies");
    static_assert(!C.pairs || (C.b_major == Major::k && (!C.swap_ab || C.tma_store) && !C.grouped() && !C.block_scales
                               && (C.swap_ab || C.share_n() % (2 * Sm90GemmConfig::pair_step) == 0) && C.tile_n % (2 * Sm90GemmConfig::pair_step * C.cluster_m) == 0),
                  "gates and ups come by rows of K, and a part of K or of a cluster has whole pairs of steps");
    static_assert(C.results >= 1 && C.results <= Sm90GemmConfig::max_results && (C.results == 1 || (!C.operand_staged && !C.grouped())),
                  "of several results each has its tensor map, and none an operand's place");
    static_assert(C.exchange_bytes() <= C.stages * C.stage_bytes(), "the ring holds a tile's fp32 sums");
    static_assert(
        !C.overlapped_epilogue
            || (C.schedule == Schedule::cooperative && C.split_k == 1 && C.tma_store && C.result_bytes() == 2),
        "an overlapped epilogue needs its warpgroup on every tile, whole sums, TMA, and half the registers for what waits");
    static_assert(C.operand_bytes() == bytes_of(C.b_type) && C.operand_bytes() <= 2 && (C.result_bytes() > 1 || !C.swap_ab),
                  "types of this kernel");
    static_assert(!C.tma_store || C.epilogue_columns() * C.result_bytes() >= Sm90GemmConfig::tma_bytes, "a box has 16 B of a row");
    static_assert(!C.promoted || (is_fp8(C.type) && C.schedule == Schedule::cooperative && !C.overlapped_epilogue),
                  "one warpgroup promotes its sums beside another's products");
    static_assert(!C.block_scales || (C.promoted && !C.swap_ab && C.tile_k == Sm90GemmConfig::scale_block
                                      && (C.tile_n % Sm90GemmConfig::scale_block == 0 || Sm90GemmConfig::scale_block % C.tile_n == 0)),
                  "a stage is one block of K, and a wgmma's columns fall into whole blocks of B or into one");
    static_assert(C.all_barrier_bytes() - C.operand_barriers() * Sm90GemmConfig::barrier_bytes
                      == Ring<C.stages>::bytes() + (C.split_k > 1 ? Ring<1>::bytes() : 0),
                  "the planner counts the barriers of both rings");
    static_assert(C.threads() <= 1024 && C.stages >= 2, "CTA size; a ring needs two stages");
    return true;
}

/// Of positive integers, without the sum that overflows near 2^31.
__device__ inline int ceil_div(int x, int y) { return (x - 1) / y + 1; }

// Named barriers; 0 is __syncthreads.
inline constexpr int sm90_store_barrier = 1;  ///< and the next two, one a warpgroup: a turned epilogue tile
inline constexpr int sm90_turn_barrier = 4;  ///< and the next: ping-pong's "your turn to multiply"
inline constexpr int sm90_ring_barrier = 6;  ///< split-K: "no wgmma reads the ring any more"

/// Shared memory: stages of A then B, epilogue tiles, scales of each stage, barriers.
template <Sm90GemmConfig C>
struct Sm90Shared {
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
    __device__ Sm90Groups<C> groups() const { return {ring.barriers + C.all_barrier_bytes()}; }
    /// With dynamic_scheduler.
    __device__ ToldTiles<C.told_tiles()> told() const { return {ring.barriers + C.all_barrier_bytes() + C.group_bytes()}; }
    /// Full of epilogue tile `i` of a warpgroup, as far as `warp` fills it with an epilogue's operand.
    __device__ unsigned operand_barrier(int warpgroup, int i, int warp) const {
        const int tile = warpgroup * Sm90GemmConfig::epilogue_tiles_in_flight + i;
        return ring.barriers + Ring<C.stages>::bytes() + (C.swap_ab ? tile : tile * 4 + warp) * Sm90GemmConfig::barrier_bytes;
    }
};

/// Where a CTA's tile of C lies: its first element, and which product of a batch, or group, it is of.
struct TileOrigin {
    int m, n, batch;
    int end = 0;  ///< of a group: the row behind its last
    __device__ TileOrigin moved(int down, int right) const { return {m + down, n + right, batch, end}; }
    /// Where what becomes of it lies in C.
    template <Sm90GemmConfig C>
    __device__ TileOrigin result() const { return {m, C.result_columns(n), batch, end}; }
};

enum class Sm90Role { producer, consumer };

/// In fixed turns tiles of groups are of two kinds, which alternate.
template <Sm90GemmConfig C, Sm90Role role, bool dynamic = C.dynamic_scheduler, bool grouped = C.grouped()>
struct Sm90Turns {
    using type = StaticTileScheduler<C.cluster_ctas()>;
};
template <Sm90GemmConfig C, Sm90Role role>
struct Sm90Turns<C, role, false, true> {
    using type = RotatingTileScheduler<C.cluster_ctas()>;
};
template <Sm90GemmConfig C, bool grouped>
struct Sm90Turns<C, Sm90Role::producer, true, grouped> {
    using type = TellingTileScheduler<C.cluster_ctas(), C.told_tiles()>;
};
template <Sm90GemmConfig C, bool grouped>
struct Sm90Turns<C, Sm90Role::consumer, true, grouped> {
    using type = ToldTileScheduler<C.cluster_ctas(), C.told_tiles()>;
};

/// The tiles of C as this CTA's cluster meets them, product after product.
template <Sm90GemmConfig C, Sm90Role role = Sm90Role::consumer>
struct Sm90TileScheduler {
    const GemmArguments& args;
    int rank;  // of this CTA among the peers of its part
    int part;  // of K, in the cluster
    int piece = 0;  // of K, that the cluster has
    typename Sm90Turns<C, role>::type tiles;
    [[maybe_unused]] Sm90Groups<C> groups;
    __device__ Sm90TileScheduler(const GemmArguments& arguments, const Sm90Shared<C>& shared)
        : args(arguments),
          rank(C.cluster_ctas() > 1 ? static_cast<int>(ptx::cluster_rank()) : 0),
          part(0),
          tiles{.rows = rows_of_tiles(arguments, shared), .columns = ceil_div(args.n, C.cluster_n * C.tile_n)},
          groups(shared.groups()) {
        if constexpr (C.dynamic_scheduler) tiles.told = shared.told();
        if constexpr (C.dynamic_scheduler && role == Sm90Role::producer) tiles.counter = args.next_tile;
        if constexpr (C.split_k > 1) {
            part = rank / C.peers();
            rank %= C.peers();
        }
        if constexpr (C.in_pieces) {  // a cluster has one tile; those side by side have the same piece of K
            tiles.step = tiles.rows * tiles.columns;
            piece = tiles.index / tiles.step;
            tiles.index -= piece * tiles.step;
        }
    }
    __device__ static int rows_of_tiles(const GemmArguments& args, const Sm90Shared<C>& shared) {
        if constexpr (C.grouped()) return shared.groups().tiles();
        else return ceil_div(args.m, C.cluster_m * C.tile_m) * (C.batched ? args.batch : 1);
    }
    /// The same of a group's tiles: they begin where the group does, and the last one may reach beyond its end.
    __device__ TileOrigin origin_in_group() const {
        const int index = groups.visited(static_cast<int>(tiles.index), tiles.columns), place = groups.place_of(index / tiles.columns);
        const int before = place == 0 ? 0 : groups.tiles_up_to(place - 1), group = groups.group(place);
        const TileCoordinate t = tile_at(index - before * tiles.columns, groups.tiles_up_to(place) - before, tiles.columns,
                                         static_cast<Order>(args.order), args.group);
        return {groups.first_row(group) + (t.row * C.cluster_m + rank / C.cluster_n) * C.tile_m,
                min((t.column * C.cluster_n + rank % C.cluster_n) * C.tile_n, args.last_n), group, groups.first_row(group + 1)};
    }
    /// What this CTA computes. A tile that would reach beyond C ends with it instead, and stores
    /// once more, bit for bit, what it shares with the tile before: TMA takes longer for rows of a box that are not there
    /// than for rows that are (docs/facts.md).
    __device__ TileOrigin origin() const {
        if constexpr (C.grouped()) return origin_in_group();
        int rows = tiles.rows, index = static_cast<int>(tiles.index), batch = 0;
        if constexpr (C.batched) {
            rows = ceil_div(args.m, C.cluster_m * C.tile_m);
            batch = index / (rows * tiles.columns);
            index -= batch * (rows * tiles.columns);
        }
        const TileCoordinate t = args.tiles ? tile_of(ptx::load_constant(args.tiles + index))
                                            : tile_at(index, rows, tiles.columns,
                                                      static_cast<Order>(args.order), args.group);
        return {min((t.row * C.cluster_m + rank / C.cluster_n) * C.tile_m, args.last_m),
                min((t.column * C.cluster_n + rank % C.cluster_n) * C.tile_n, args.last_n), batch};
    }
};

/// Blocks of the K loop, tile_k long, that a CTA multiplies.
template <Sm90GemmConfig C>
struct Sm90Blocks {
    int first = 0, count;
    template <Sm90Role role>
    __device__ Sm90Blocks(const GemmArguments& args, const Sm90TileScheduler<C, role>& scheduler) : count(ceil_div(args.k, C.tile_k)) {
        if constexpr (C.adds_up()) {
            const int all = count, most = ceil_div(all, C.split_k * (C.in_pieces ? args.pieces : 1));
            first = (scheduler.piece * C.split_k + scheduler.part) * most;
            // A part that K is too short for takes one block beyond the end: TMA fills it with zeros.
            count = max(1, min(most, all - first));
        }
    }
};

}  // namespace rooftile
