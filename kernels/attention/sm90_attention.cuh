// O = softmax(scale * Q K^T) V on Hopper, forward: bf16 or fp16 in and out, fp32 sums.
//
// kernels/matrix/back_to_back.cuh has the roles: A is Q, B are keys, E values, and what is between the products is the softmax, of which
// O is rescaled as it goes.
//
// Blocks run from the last key to the first: those that need the mask come first, and the rest are free of it. Tiles come in the order of
// attention_tile(), longest first.
//
// Packed sequences of unlike lengths lie one behind the other in each tensor, and where each begins stands on the device
// (cu_seqlens): the producer looks up which one a tile is of, and tells the consumers with Q. A block at the end of a sequence
// holds keys of the next one, which are hidden as the mask hides.
//
// Of few queries over many keys bytes are what counts: heads that share keys are rows of one tile, the blocks of all tiles are shared out to
// CTAs evenly (attention_turn.cuh), and of a tile that is cut the parts are added up by who comes last (attention_split.cuh). Then keys may be
// of a cache: lengths are read on the device, and blocks may be made of pages that a table names.
//
// What the mask hides has a probability of 0, but 0 times a NaN or an infinity in V is NaN. A row that is NaN once the masked
// blocks, the first ones, are in is computed again from the keys that it sees alone (attention_row()), as is one whose scores are
// all far from 0, at the end of what fp32 holds.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/attention_row.cuh"
#include "kernels/attention/attention_split.cuh"
#include "kernels/attention/attention_turn.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/attention/sm90_attention_config.hpp"
#include "kernels/matrix/back_to_back.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// A tile, what its rows see, and whether it has any; where tiles are cut, which piece of it.
struct Sm90AttentionPlace {
    AttentionTile tile;
    AttentionExtent extent;
    int q;  ///< its first row
    AttentionPiece piece{};
    __device__ bool any() const { return q < extent.queries; }
};

/// What tile numbers stand for.
template <Sm90AttentionConfig C>
struct Sm90AttentionTiles {
    const AttentionArguments& args;
    /// As far as the compiler knows it.
    __device__ AttentionExtent extent() const {
        AttentionExtent e = args.extent;
        e.mask = C.mask;
        if constexpr (!C.grouped) e.group = 1;
        return e;
    }
    __device__ int rows() const { return C.grouped ? rows_of_tile(C.tile_q, args.extent.group) : C.tile_q; }
    __device__ int q_tiles() const {
        if (C.packed) return attention_place(args.extent.queries, args.sequences, C.tile_q);
        return (args.extent.queries + rows() - 1) / rows();
    }
    __device__ unsigned count() const { return static_cast<unsigned>(q_tiles() * args.heads * args.batches); }
    __device__ Sm90AttentionPlace place(unsigned number) const {
        const AttentionTile tile = attention_tile(static_cast<int>(number), q_tiles(), args.heads, args.batches, args.section_heads,
                                                  C.packed || C.mask != AttentionMask::none);
        if constexpr (C.packed) return in_sequence(tile);
        return {tile, extent(), tile.q_tile * rows()};
    }
    /// Of the CTA's next turn where tiles are cut.
    using Turns = AttentionTurns<C.piece, C.latent>;
    __device__ Sm90AttentionPlace cut(Turns& turns, unsigned turn) const {
        const int tiles_of_head = q_tiles();
        const AttentionTurn at = turns.take(args, extent(), turn, tiles_of_head * args.heads, C.tile_kv);
        const AttentionTile tile{at.tile % tiles_of_head, at.tile / tiles_of_head, C.latent ? turns.sequence % args.batches : turns.sequence};
        return {tile, Turns::extent_of(args, extent(), turns.sequence), tile.q_tile * rows(), at.piece};
    }
    __device__ int end_row(const Sm90AttentionPlace& at) const { return C.grouped ? min(at.q + rows(), at.extent.queries) : at.extent.queries; }
    /// Of a tile, or of its piece, the blocks of keys.
    __device__ KeyBlocks blocks(const Sm90AttentionPlace& at) const { return C.split ? at.piece.blocks : at.extent.blocks(at.q, C.tile_q, C.tile_kv); }

    /// What the producer tells the consumers of a tile of packed sequences, or of a piece.
    __device__ static void tell(unsigned shared, unsigned number, const Sm90AttentionPlace& at) {
        const int of_packed[] = {static_cast<int>(number), at.q, at.tile.head, at.tile.first_row, at.extent.queries, at.extent.keys, at.extent.window};
        const int of_piece[] = {static_cast<int>(number), at.q, at.tile.head, at.tile.batch, at.extent.keys, at.piece.blocks.first, at.piece.blocks.end};
#pragma unroll
        for (int i = 0; i < 7; ++i) ptx::store_shared(shared + 4 * i, static_cast<unsigned>(C.split ? of_piece[i] : of_packed[i]));
        if (C.split) {
            ptx::store_shared(shared + 28, static_cast<unsigned>(at.piece.part << 16 | at.piece.parts));
            ptx::store_shared(shared + 32, at.piece.first_part);
        }
    }
    __device__ Sm90AttentionPlace told(unsigned shared) const {
        const auto word = [&](int i) { return static_cast<int>(ptx::load_shared(shared + 4 * i)); };
        if constexpr (C.split) {
            AttentionExtent e = extent();
            e.keys = word(4);
            return {
                {0, word(2), word(3)}, e, word(1), {{word(5), word(6)}, ptx::load_shared(shared + 32), word(7) >> 16, word(7) & 0xffff}};
        } else {
            return {{0, word(2), 0, word(3)}, {C.mask, word(4), word(5), word(6)}, word(1)};
        }
    }

  private:
    /// `q_tile` is a place among those of all sequences.
    __device__ Sm90AttentionPlace in_sequence(AttentionTile tile) const {
        const int sequence = attention_sequence(args.cu_seqlens, args.sequences, tile.q_tile, C.tile_q);
        tile.first_row = args.cu_seqlens[sequence];
        tile.q_tile -= attention_place(tile.first_row, sequence, C.tile_q);
        const int length = args.cu_seqlens[sequence + 1] - tile.first_row;
        return {tile, {C.mask, length, length, args.extent.window}, tile.q_tile * C.tile_q};
    }
};

/// Box after box of `rows` rows of a head.
template <int rows, int elements>
__device__ void load_rows(const TensorMap& map, unsigned shared, unsigned barrier, int row, int head, int batch) {
#pragma unroll
    for (int i = 0; i < Sm90AttentionConfig::boxes(elements); ++i)
        ptx::tma_load_4d(shared + i * Sm90AttentionConfig::box_bytes(rows), map, i * Sm90AttentionConfig::box_elements, row,
                         head, batch, barrier);
}

/// A block of keys that lie in pages, page after page; those behind the last key stay what they were. Pages are whole blocks or the other
/// way round.
template <Sm90AttentionConfig C, int elements>
__device__ void load_pages(const TensorMap& map, unsigned shared, unsigned barrier, const AttentionArguments& args, const Sm90AttentionPlace& at, int key, int kv_head) {
    const int* const table = args.block_table + static_cast<long long>(at.tile.batch) * args.table_pages;
    constexpr int rows = C.page < C.tile_kv ? C.page : C.tile_kv, pages = C.tile_kv / rows, together = pages < 4 ? pages : 4;
    const int end = min(key + C.tile_kv, at.extent.keys);
#pragma unroll 1
    for (int group = key; group < end; group += together * rows) {
        int page[together];  // asked for together: each takes as long as all
#pragma unroll
        for (int j = 0; j < together; ++j)
            if (group + j * rows < end) page[j] = __ldg(table + (group + j * rows) / C.page);
#pragma unroll
        for (int j = 0; j < together; ++j) {
            const int first = group + j * rows;
            if (first >= end) break;
#pragma unroll
            for (int i = 0; i < Sm90AttentionConfig::boxes(elements); ++i)
                ptx::tma_load_4d(shared + i * Sm90AttentionConfig::box_bytes(C.tile_kv) + (first - key) * Sm90AttentionConfig::swizzle_bytes, map,
                                 i * Sm90AttentionConfig::box_elements, first % C.page, kv_head, page[j], barrier);
        }
    }
}

/// What the producer brings: blocks of keys from the last to the first, so that those that need the mask come first.
template <Sm90AttentionConfig C>
struct AttentionLoads {
    const TensorMap &map_q, &map_k, &map_v;
    const AttentionArguments& args;
    typename Sm90AttentionTiles<C>::Turns& turns;  ///< where tiles are cut
    int queries_a_key_head = args.heads / args.kv_heads;

    struct Tile {
        Sm90AttentionPlace at{};
        KeyBlocks blocks{};
        int kv_head = 0;
    };
    __device__ Sm90AttentionTiles<C> places() const { return {args}; }
    /// By the producer's whole warp.
    __device__ void prepare() const {
        if constexpr (C.split) turns.prepare(args, places().extent(), places().q_tiles() * args.heads, C.tile_kv);
    }
    __device__ unsigned tiles() const { return C.split ? blockIdx.x + gridDim.x * turns.turns : places().count(); }
    __device__ unsigned* counter() const { return C.split ? nullptr : args.counter; }
    __device__ Tile tile(unsigned number) const {
        Sm90AttentionPlace at;
        if constexpr (C.split) at = places().cut(turns, number / gridDim.x);
        else at = places().place(number);
        return {at, places().blocks(at), at.tile.head / queries_a_key_head};
    }
    __device__ bool any(const Tile& tile) const { return !C.packed || tile.at.any(); }
    __device__ int blocks(const Tile& tile) const { return tile.blocks.count(); }
    __device__ void tell(unsigned shared, unsigned number, const Tile& tile) const {
        if constexpr (C.packed || C.split) Sm90AttentionTiles<C>::tell(shared, number, tile.at);
        else ptx::store_shared(shared, number);
    }
    __device__ int a_bytes() const {
        return Sm90AttentionConfig::boxes(C.dim) * Sm90AttentionConfig::box_bytes(places().rows());
    }
    __device__ void load_a(const Tile& tile, unsigned shared, unsigned barrier) const {
        if constexpr (C.grouped) {
            // A query's heads side by side, query after query.
#pragma unroll
            for (int i = 0; i < Sm90AttentionConfig::boxes(C.dim); ++i)
                ptx::tma_load_4d(shared + i * Sm90AttentionConfig::box_bytes(C.tile_q), map_q, i * Sm90AttentionConfig::box_elements,
                                 tile.at.tile.head * args.extent.group, tile.at.q / args.extent.group, tile.at.tile.batch, barrier);
        } else {
            load_rows<C.tile_q, C.dim>(map_q, shared, barrier, tile.at.tile.first_row + tile.at.q, tile.at.tile.head, tile.at.tile.batch);
        }
    }
    __device__ int b_bytes(const Tile& tile, int i) const { return block_bytes(tile, i, C.dim); }
    __device__ int e_bytes(const Tile& tile, int i) const { return block_bytes(tile, i, C.dim_v); }
    __device__ void load_b(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
        if constexpr (C.paged()) load_pages<C, C.dim>(map_k, shared, barrier, args, tile.at, key(tile, i), tile.kv_head);
        else load_rows<C.tile_kv, C.dim>(map_k, shared, barrier, key(tile, i), tile.kv_head, tile.at.tile.batch);
    }
    __device__ void load_e(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
        if constexpr (C.paged()) load_pages<C, C.dim_v>(map_v, shared, barrier, args, tile.at, key(tile, i), tile.kv_head);
        else load_rows<C.tile_kv, C.dim_v>(map_v, shared, barrier, key(tile, i), tile.kv_head, tile.at.tile.batch);
    }

  private:
    __device__ static int key(const Tile& tile, int i) { return tile.at.tile.first_row + (tile.blocks.end - 1 - i) * C.tile_kv; }
    __device__ int block_bytes(const Tile& tile, int i, int elements) const {
        int rows = C.tile_kv;
        if constexpr (C.paged()) {
            const int box = min(C.page, C.tile_kv), left = max(0, min(C.tile_kv, tile.at.extent.keys - key(tile, i)));
            rows = (left + box - 1) / box * box;
        }
        return Sm90AttentionConfig::boxes(elements) * Sm90AttentionConfig::box_bytes(rows);
    }
};

/// This warpgroup's rows of O, divided by their sums; of some of the columns, the first of which is `first_column`.
template <Sm90AttentionConfig C, int count, class Softmax>
__device__ void store(const float (&sums)[count], const Softmax& softmax, const AttentionArguments& args, const Sm90AttentionPlace& at, int query,
                      int first_column = 0) {
    const AttentionTile& tile = at.tile;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = softmax.total(half);
        const float by = total == 0 ? 0 : ptx::reciprocal_approx(total);
        const int row = query + 8 * half;
        const bool inside = row < Sm90AttentionTiles<C>{args}.end_row(at);
        char* o = static_cast<char*>(args.o) + Sm90AttentionConfig::element_bytes * offset_of_row(at.extent, args.o_strides, tile, inside ? row : 0);
        store_row<C.type>(sums, half, by, o + Sm90AttentionConfig::element_bytes * first_column, args.dim_v - first_column, inside);
        constexpr float ln2 = 0.693147180559945f;
        if (args.log_sum_exp && inside && first_column == 0 && threadIdx.x % 4 == 0)
            *log_sum_exp_place(args, at.extent, tile, row) = total == 0 ? minus_infinity() : softmax.from[half] * ln2 + __logf(total);
    }
}

/// Bits of those of the thread's two rows that are NaN.
template <int count>
__device__ unsigned nan_rows_of(const float (&sums)[count]) {
    bool nan_rows[2] = {false, false};
#pragma unroll
    for (int i = 0; i < count; ++i) nan_rows[i / 2 % 2] |= sums[i] != sums[i];
    return (nan_rows[0] ? 1u : 0u) | (nan_rows[1] ? 2u : 0u);
}

/// Of a warp's sixteen rows those for which a thread has a bit.
__device__ inline unsigned rows_with_bits(unsigned rows_of_thread) {
    unsigned rows = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned threads = __ballot_sync(0xffffffff, (rows_of_thread >> half & 1) != 0);
#pragma unroll
        for (int i = 0; i < 8; ++i) rows |= (threads >> 4 * i & 15) != 0 ? 1u << (8 * half + i) : 0;
    }
    return rows;
}

/// The softmax between the products of a consumer warpgroup, and the way out of O.
template <Sm90AttentionConfig C, class Score>
struct SoftmaxBetween {
    const AttentionArguments& args;
    const Score& score;
    int warpgroup;
    FragmentPlace place{};
    int rows = warpgroup * Sm90AttentionConfig::warpgroup_q + place.row;

    static constexpr bool may_be_empty = !C.split;  // a piece has a block
    static constexpr bool hides = C.mask != AttentionMask::none || C.packed;
    static constexpr int threads = 128, barrier = back_to_back_order_barrier + 3;  ///< the warpgroup's own: beyond those of the order of products
    static constexpr int heads_of_thread = C.grouped && !Score::is_plain ? 2 : 1;

    struct Tile {
        Sm90AttentionPlace at;
        int query;
        KeyBlocks blocks, clear;
        typename Score::OfHead heads[heads_of_thread];
        OnlineSoftmax softmax{};
        unsigned nan_rows = 0;
        float shrink[2];
        bool rescales = false;
        __device__ int block(int i) const { return blocks.end - 1 - i; }
        __device__ bool masked(int block) const { return block >= clear.end || block < clear.first; }
    };
    __device__ Sm90AttentionPlace place_of(unsigned number, unsigned told) const {
        const Sm90AttentionTiles<C> tiles{args};
        if constexpr (C.packed || C.split) return tiles.told(told);
        else return tiles.place(number);
    }
    __device__ Tile begin(unsigned number, unsigned told) const {
        const Sm90AttentionPlace at = place_of(number, told);
        Tile tile{at, at.q + rows, Sm90AttentionTiles<C>{args}.blocks(at), at.extent.clear(at.q, C.tile_q, C.tile_kv), {}};
#pragma unroll
        for (int half = 0; half < heads_of_thread; ++half) {
            const int row = min(tile.query + 8 * half, at.extent.queries - 1);
            tile.heads[half] = score.of_head(C.grouped ? place_of_row(at.extent, at.tile, row).head : at.tile.head);
        }
        return tile;
    }
    __device__ int blocks(const Tile& tile) const { return tile.blocks.count(); }

    template <bool overlapped>
    __device__ void apply(Tile& tile, float (&scores)[1][C.tile_kv / 2], int i) const {
        const int block = tile.block(i), key = block * C.tile_kv;
        make_scores<Score>(scores[0], tile.heads, args.scale, tile.at.extent, tile.query, key + place.column);
        if (tile.masked(block)) hide<C.tile_kv, C.mask == AttentionMask::window>(scores[0], tile.at.extent, tile.query, key, place.column);
        tile.rescales = tile.softmax.take(scores[0], args.scale_log2, tile.shrink);
        if constexpr (overlapped) tile.softmax.complete();
    }
    __device__ void added(Tile& tile, const float (&sums)[C.dim_v / 2], int i) const {
        if (hides && tile.masked(tile.block(i))) tile.nan_rows |= nan_rows_of(sums);
    }
    __device__ void rescale(const Tile& tile, float (&sums)[C.dim_v / 2]) const {
        if (!tile.rescales) return;
#pragma unroll
        for (int i = 0; i < C.dim_v / 2; ++i) sums[i] *= tile.shrink[i / 2 % 2];
    }
    __device__ void beside_last(const Tile&) const {}
    __device__ void finish(Tile& tile, const float (&sums)[C.dim_v / 2], unsigned number, unsigned told) const {
        ptx::keep(number);  // a register through the loop, and not all that follows from it
        const Sm90AttentionPlace at = place_of(number, told);
        const int warp = static_cast<int>(threadIdx.x % threads / 32), warps = threads / 32, rows_of_warp = 16;
        // Rows that are computed again, by the warp that stored them: `first`, and each `step` further.
        const unsigned spoiled = hides && __any_sync(0xffffffff, tile.nan_rows != 0) ? rows_with_bits(tile.nan_rows) : 0;
        unsigned again = 0;
        int first = at.q + warpgroup * Sm90AttentionConfig::warpgroup_q + rows_of_warp * warp, step = 1;
        if (C.split && at.piece.parts > 1) {
            first = at.q + warpgroup * Sm90AttentionConfig::warpgroup_q + warp, step = warps;
            again = finish_part(tile, sums, spoiled, at, first, step);
        } else {
            store<C>(sums, tile.softmax, args, at, tile.query);
            const unsigned lost = (tile.softmax.lost(0) ? 1u : 0u) | (tile.softmax.lost(1) ? 2u : 0u);
            again = spoiled;
            if (__any_sync(0xffffffff, lost != 0)) again |= rows_with_bits(lost);
        }
        __syncwarp();
#pragma unroll 1
        for (int i = 0; again != 0; ++i, again >>= 1)
            if ((again & 1) != 0 && first + i * step < Sm90AttentionTiles<C>{args}.end_row(at)) attention_row<C.type>(args, at.extent, at.tile, first + i * step, score);
    }
    /// Leaves this part's sums; of who comes last, the whole tile's rows, but for those that are to be computed again, which have a bit. A warp
    /// has row `first`, and each `step` further.
    __device__ unsigned finish_part(const Tile& tile, const float (&sums)[C.dim_v / 2], unsigned spoiled, const Sm90AttentionPlace& at, int first, int step) const {
        const int end = min(Sm90AttentionTiles<C>{args}.end_row(at), at.q + (warpgroup + 1) * Sm90AttentionConfig::warpgroup_q);
        const SplitTile<C.dim_v, (C.piece > 0)> split{min(args.extent.queries, Sm90AttentionTiles<C>{args}.rows()), at.piece.first_part,
                                                      at.piece.parts};
        leave_part(sums, tile.softmax, spoiled, args.partials, split, at.piece.part, rows, place.column);
        unsigned* const arrived = args.arrived + split.first_part * C.consumer_warpgroups() + warpgroup;
        unsigned again = 0;
        if (!came_last(barrier + warpgroup, threads, arrived, split.parts)) return again;
#pragma unroll 1
        for (int row = first, bit = 1; row < end; row += step, bit *= 2)
            if (!add_up_row<C.type, C.most_splits()>(args, at.extent, at.tile, row, split, row - at.q)) again |= bit;
        return again;
    }
    /// Before a block is multiplied: rows behind the last key of a cache are whatever was there, and 0 times a NaN is NaN.
    __device__ void clean_e(const Tile& tile, unsigned shared, int i) const {
        if constexpr (C.cache) {
            const int left = max(0, tile.at.extent.keys - tile.block(i) * C.tile_kv);
            if (left >= C.tile_kv) return;
            const float zeros[4] = {};
            constexpr int box_rows = Sm90AttentionConfig::boxes(C.dim_v) * C.tile_kv, pieces = Sm90AttentionConfig::swizzle_bytes / 16;
            for (int j = static_cast<int>(threadIdx.x % threads); j < box_rows * pieces; j += threads)
                if (j / pieces % C.tile_kv >= left) ptx::store_shared_4(shared + 16 * j, zeros);
            ptx::fence_async_proxy();
            ptx::named_barrier_sync(barrier + warpgroup, threads);
        }
    }
    __device__ void finish_empty(const Tile& tile, const float (&sums)[C.dim_v / 2]) const { store<C>(sums, tile.softmax, args, tile.at, tile.query); }
};

template <Sm90AttentionConfig C, class Score>
__device__ void run_attention(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v, const AttentionArguments& args,
                              const Score& score) {
    extern __shared__ __align__(Sm90AttentionConfig::tile_alignment) unsigned char memory[];
    typename Sm90AttentionTiles<C>::Turns turns;
    run_back_to_back<C.shape()>(ptx::shared_address(memory), AttentionLoads<C>{map_q, map_k, map_v, args, turns},
                                [&](int warpgroup) { return SoftmaxBetween<C, Score>{args, score, warpgroup}; });
}

template <Sm90AttentionConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_attention(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                   const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args) {
    run_attention<C>(map_q, map_k, map_v, args, PlainScore{});
}

/// The same of scores that are not plain.
template <Sm90AttentionConfig C, class Score>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_attention_scored(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                          const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args,
                          const __grid_constant__ Score score) {
    run_attention<C>(map_q, map_k, map_v, args, score);
}

}  // namespace rooftile
