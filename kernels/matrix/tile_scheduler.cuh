// Which tiles of C a CTA computes, and which blocks of K: in fixed turns, or from a counter (dynamic_scheduler).
#pragma once

#include "kernels/matrix/layout.cuh"
#include "kernels/pipeline/tile_order.cuh"
#include "kernels/ptx/load.cuh"

namespace rooftile {

enum class MatrixRole { producer, consumer };

/// In fixed turns tiles of groups are of two kinds, which alternate.
template <MatrixConfig C, MatrixRole role, bool dynamic = C.dynamic_scheduler, bool grouped = C.grouped()>
struct TileSchedulerOf {
    using type = StaticTileScheduler<C.cluster_ctas()>;
};
template <MatrixConfig C, MatrixRole role>
struct TileSchedulerOf<C, role, false, true> {
    using type = RotatingTileScheduler<C.cluster_ctas()>;
};
template <MatrixConfig C, bool grouped>
struct TileSchedulerOf<C, MatrixRole::producer, true, grouped> {
    using type = TileSchedulerProducer<C.cluster_ctas(), C.told_tiles()>;
};
template <MatrixConfig C, bool grouped>
struct TileSchedulerOf<C, MatrixRole::consumer, true, grouped> {
    using type = TileSchedulerConsumer<C.cluster_ctas(), C.told_tiles()>;
};

/// The tiles of C as this CTA's cluster meets them, product after product.
template <MatrixConfig C, MatrixRole role = MatrixRole::consumer>
struct MatrixTileScheduler {
    const MatrixArguments& args;
    int rank;  // of this CTA among the peers of its part
    int part;  // of K, in the cluster
    int piece = 0;  // of K, that the cluster has
    typename TileSchedulerOf<C, role>::type tiles;
    [[maybe_unused]] RowGroups<C> groups;
    __device__ MatrixTileScheduler(const MatrixArguments& arguments, const MatrixShared<C>& shared)
        : args(arguments),
          rank(C.cluster_ctas() > 1 ? static_cast<int>(ptx::cluster_rank()) : 0),
          part(0),
          tiles{.rows = rows_of_tiles(arguments, shared), .columns = ceil_div(args.n, C.cluster_n * C.tile_n)},
          groups(shared.groups()) {
        if constexpr (C.dynamic_scheduler) tiles.told = shared.told();
        if constexpr (C.dynamic_scheduler && role == MatrixRole::producer) tiles.counter = args.next_tile;
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
    __device__ static int rows_of_tiles(const MatrixArguments& args, const MatrixShared<C>& shared) {
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
template <MatrixConfig C>
struct KBlocks {
    int first = 0, count;
    template <MatrixRole role>
    __device__ KBlocks(const MatrixArguments& args, const MatrixTileScheduler<C, role>& scheduler) : count(ceil_div(args.k, C.tile_k)) {
        if constexpr (C.adds_up()) {
            const int all = count, most = ceil_div(all, C.split_k * (C.in_pieces ? args.pieces : 1));
            first = (scheduler.piece * C.split_k + scheduler.part) * most;
            // A part that K is too short for takes one block beyond the end: TMA fills it with zeros.
            count = max(1, min(most, all - first));
        }
    }
};

}  // namespace rooftile
