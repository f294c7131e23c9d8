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
// Where tiles are few and keys many, a tile's keys are split in parts, each of them a turn of its own (attention_split.cuh).
//
// What the mask hides has a probability of 0, but 0 times a NaN or an infinity in V is NaN. A row that is NaN once the masked
// blocks, the first ones, are in is computed again from the keys that it sees alone (attention_row()), as is one whose scores are
// all far from 0, at the end of what fp32 holds.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/attention_row.cuh"
#include "kernels/attention/attention_split.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/attention/sm90_attention_config.hpp"
#include "kernels/matrix/back_to_back.cuh"
#include "kernels/pipeline/came_last.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

/// A tile, what its rows see, and whether it has any.
struct Sm90AttentionPlace {
    AttentionTile tile;
    AttentionExtent extent;
    int q;  ///< its first query
    int part = 0;
    unsigned index = 0;  ///< of the tile
    __device__ bool any() const { return q < extent.queries; }
};

/// What tile numbers stand for.
template <Sm90AttentionConfig C>
struct Sm90AttentionTiles {
    const AttentionArguments& args;
    __device__ int q_tiles() const {
        if (C.packed) return attention_place(args.extent.queries, args.sequences, C.tile_q);
        return (args.extent.queries + C.tile_q - 1) / C.tile_q;
    }
    __device__ unsigned count() const { return static_cast<unsigned>(q_tiles() * args.heads * args.batches) * (C.split ? args.splits : 1); }
    __device__ Sm90AttentionPlace place(unsigned number) const {
        if constexpr (C.split) {
            Sm90AttentionPlace at = place_of_tile(number / args.splits);
            at.part = static_cast<int>(number % args.splits), at.index = number / args.splits;
            return at;
        }
        return place_of_tile(number);
    }
    /// Of a tile, or of its part, the blocks of keys.
    __device__ KeyBlocks blocks(const Sm90AttentionPlace& at) const {
        const KeyBlocks all = at.extent.blocks(at.q, C.tile_q, C.tile_kv);
        return C.split ? part_of(all, at.part, args.splits) : all;
    }
    __device__ Sm90AttentionPlace place_of_tile(unsigned number) const {
        const AttentionTile tile = attention_tile(static_cast<int>(number), q_tiles(), args.heads, args.batches, args.section_heads,
                                                  C.packed || C.mask != AttentionMask::none);
        if constexpr (C.packed) return in_sequence(tile);
        AttentionExtent extent = args.extent;
        extent.mask = C.mask;  // known to the compiler
        return {tile, extent, tile.q_tile * C.tile_q};
    }
    /// What the producer tells the consumers of a tile of packed sequences.
    __device__ static void tell(unsigned shared, unsigned number, const Sm90AttentionPlace& at) {
        const int words[] = {static_cast<int>(number), at.q, at.tile.head, at.tile.first_row, at.extent.queries, at.extent.keys,
                             at.extent.window};
#pragma unroll
        for (int i = 0; i < 7; ++i) ptx::store_shared(shared + 4 * i, static_cast<unsigned>(words[i]));
    }
    __device__ static Sm90AttentionPlace told(unsigned shared) {
        const auto word = [&](int i) { return static_cast<int>(ptx::load_shared(shared + 4 * i)); };
        return {{0, word(2), 0, word(3)}, {C.mask, word(4), word(5), word(6)}, word(1)};
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

/// What the producer brings: blocks of keys from the last to the first, so that those that need the mask come first.
template <Sm90AttentionConfig C>
struct AttentionLoads {
    const TensorMap &map_q, &map_k, &map_v;
    const AttentionArguments& args;
    int queries_a_key_head = args.heads / args.kv_heads;

    struct Tile {
        Sm90AttentionPlace at{};
        KeyBlocks blocks{};
        int kv_head = 0;
    };
    __device__ Sm90AttentionTiles<C> places() const { return {args}; }
    __device__ unsigned tiles() const { return places().count(); }
    __device__ unsigned* counter() const { return args.counter; }
    __device__ Tile tile(unsigned number) const {
        const Sm90AttentionPlace at = places().place(number);
        return {at, places().blocks(at), at.tile.head / queries_a_key_head};
    }
    __device__ bool any(const Tile& tile) const { return !C.packed || tile.at.any(); }
    __device__ int blocks(const Tile& tile) const { return tile.blocks.count(); }
    __device__ void tell(unsigned shared, unsigned number, const Tile& tile) const {
        if constexpr (C.packed) Sm90AttentionTiles<C>::tell(shared, number, tile.at);
        else ptx::store_shared(shared, number);
    }
    __device__ void load_a(const Tile& tile, unsigned shared, unsigned barrier) const {
        load_rows<C.tile_q, C.dim>(map_q, shared, barrier, tile.at.tile.first_row + tile.at.q, tile.at.tile.head, tile.at.tile.batch);
    }
    __device__ void load_b(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
        load_rows<C.tile_kv, C.dim>(map_k, shared, barrier, key(tile, i), tile.kv_head, tile.at.tile.batch);
    }
    __device__ void load_e(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
        load_rows<C.tile_kv, C.dim_v>(map_v, shared, barrier, key(tile, i), tile.kv_head, tile.at.tile.batch);
    }

  private:
    __device__ static int key(const Tile& tile, int i) { return tile.at.tile.first_row + (tile.blocks.end - 1 - i) * C.tile_kv; }
};

/// This warpgroup's rows of O, divided by their sums.
template <Sm90AttentionConfig C>
__device__ void store(const float (&sums)[C.dim_v / 2], const OnlineSoftmax& softmax, const AttentionArguments& args,
                      const Sm90AttentionPlace& at, int query) {
    const AttentionTile& tile = at.tile;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = softmax.total(half);
        const float by = total == 0 ? 0 : ptx::reciprocal_approx(total);
        const int row = query + 8 * half, row_of_all = tile.first_row + row;
        const bool inside = row < at.extent.queries;
        char* o = static_cast<char*>(args.o)
                  + Sm90AttentionConfig::element_bytes
                        * (tile.batch * args.o_strides.batch + tile.head * args.o_strides.head + row_of_all * args.o_strides.row);
        store_row<C.type>(sums, half, by, o, args.dim_v, inside);
        constexpr float ln2 = 0.693147180559945f;
        if (args.log_sum_exp && inside && threadIdx.x % 4 == 0)
            *log_sum_exp_place(args, tile, row) = total == 0 ? minus_infinity() : softmax.from[half] * ln2 + __logf(total);
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

/// The rows of a warp for which a thread has a bit, again; behind store(). `first` is the warp's first query.
template <Sm90AttentionConfig C, class Score>
__device__ void recompute_rows(unsigned nan_rows, const AttentionArguments& args, const Sm90AttentionPlace& at, int first,
                               const Score& score) {
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
        const unsigned threads = __ballot_sync(0xffffffff, (nan_rows >> (i / 8) & 1) != 0);
        if ((threads >> (i % 8 * 4) & 15) != 0 && first + i < at.extent.queries)
            attention_row<C.type>(args, at.extent, at.tile, first + i, score);
    }
}

/// The softmax between the products of a consumer warpgroup, and the way out of O.
template <Sm90AttentionConfig C, class Score>
struct SoftmaxBetween {
    const AttentionArguments& args;
    const Score& score;
    int warpgroup;
    FragmentPlace place{};
    int rows = warpgroup * Sm90AttentionConfig::warpgroup_q + place.row;

    static constexpr bool may_be_empty = true;
    static constexpr bool hides = C.mask != AttentionMask::none || C.packed;

    struct Tile {
        Sm90AttentionPlace at;
        int query;
        KeyBlocks blocks, clear;
        typename Score::OfHead head;
        OnlineSoftmax softmax{};
        unsigned nan_rows = 0;
        float shrink[2];
        bool rescales = false;
        __device__ int block(int i) const { return blocks.end - 1 - i; }
        __device__ bool masked(int block) const { return block >= clear.end || block < clear.first; }
    };
    __device__ Sm90AttentionPlace place_of(unsigned number, unsigned told) const {
        const Sm90AttentionTiles<C> tiles{args};
        return C.packed ? tiles.told(told) : tiles.place(number);
    }
    __device__ Tile begin(unsigned number, unsigned told) const {
        const Sm90AttentionPlace at = place_of(number, told);
        return {at, at.q + rows, Sm90AttentionTiles<C>{args}.blocks(at), at.extent.clear(at.q, C.tile_q, C.tile_kv),
                score.of_head(at.tile.head)};
    }
    __device__ int blocks(const Tile& tile) const { return tile.blocks.count(); }

    template <bool overlapped>
    __device__ void apply(Tile& tile, float (&scores)[1][C.tile_kv / 2], int i) const {
        const int block = tile.block(i), key = block * C.tile_kv;
        make_scores<Score>(scores[0], tile.head, args.scale, tile.at.extent.place(tile.query), key + place.column);
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
        unsigned nan_rows = tile.nan_rows;
        nan_rows |= (tile.softmax.lost(0) ? 1u : 0u) | (tile.softmax.lost(1) ? 2u : 0u);
        ptx::keep(number);  // a register through the loop, and not all that follows from it
        const Sm90AttentionPlace at = place_of(number, told);
        if constexpr (C.split) return finish_part(tile, sums, at);
        store<C>(sums, tile.softmax, args, at, tile.query);
        if (__any_sync(0xffffffff, nan_rows != 0)) recompute_rows<C>(nan_rows, args, at, tile.query - place.row % 8, score);
    }
    /// Leaves this part's sums; of who comes last, the whole tile's rows.
    __device__ void finish_part(const Tile& tile, const float (&sums)[C.dim_v / 2], const Sm90AttentionPlace& at) const {
        const int left = args.extent.queries - at.q;  // of a last tile; parts lie alike of all
        const SplitTile<C.dim_v> split{args.extent.queries < C.tile_q ? args.extent.queries : C.tile_q};
        leave_part<C.dim_v>(sums, tile.softmax, split.part(args.partials, at.index, args.splits, at.part), split, rows, place.column);
        constexpr int threads = 128, barrier = back_to_back_order_barrier + 3;  // beyond those of the order of products
        unsigned* const arrived = args.arrived + at.index * C.consumer_warpgroups() + warpgroup;
        if (!came_last(barrier + warpgroup, threads, arrived, args.splits)) return;
        const int begin = warpgroup * Sm90AttentionConfig::warpgroup_q, end = begin + Sm90AttentionConfig::warpgroup_q;
        for (int row = begin + static_cast<int>(threadIdx.x % threads / 32); row < end && row < left; row += threads / 32)
            add_up_row<C.type, C.dim_v>(args, at.extent, at.tile, at.q + row, split.part(args.partials, at.index, args.splits, 0), split, row, score);
        __syncwarp();
    }
    __device__ void finish_empty(const Tile& tile, const float (&sums)[C.dim_v / 2]) const {
        if constexpr (C.split) return finish_part(tile, sums, tile.at);
        store<C>(sums, tile.softmax, args, tile.at, tile.query);
    }
};

template <Sm90AttentionConfig C, class Score>
__device__ void run_attention(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v, const AttentionArguments& args,
                              const Score& score) {
    extern __shared__ __align__(Sm90AttentionConfig::tile_alignment) unsigned char memory[];
    run_back_to_back<C.shape()>(ptx::shared_address(memory), AttentionLoads<C>{map_q, map_k, map_v, args},
                                [&](int warpgroup) { return SoftmaxBetween<C, Score>{args, score, warpgroup}; });
}

template <Sm90AttentionConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_attention(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                   const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args) {
    run_attention<C>(map_q, map_k, map_v, args, PlainScore{});
}

/// The same of scores that are not plain.
template <Sm90AttentionConfig C, class Score>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_attention_scored(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                          const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args,
                          const __grid_constant__ Score score) {
    run_attention<C>(map_q, map_k, map_v, args, score);
}

}  // namespace rooftile
