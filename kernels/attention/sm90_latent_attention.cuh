// O = softmax(scale * Q K^T) V on Hopper where V is the first columns of K: multi-head latent attention in its absorbed form, of few queries.
//
// All heads share one row of keys, so that heads are rows of a tile: 64 of them, a query's heads side by side, query after query. A key's row
// (576 elements in DeepSeek's models) is brought once and read twice: whole for the scores, its first `dim_v` elements as values.
//
// One CTA has a producer warpgroup and two consumer warpgroups, which have the same 64 rows. O of 512 columns is more than one
// warpgroup's registers hold, so each has half of its columns, and, so that no score is computed twice, half of a block's scores. Of a block:
//   1  S = Q K^T of half of the keys; the greatest of each row, to shared memory
//   2  they meet; probabilities from the greatest of both, to shared memory as the next product's first operand
//   3  they meet; O += P V of half of the columns, with P of all keys
// The next block comes meanwhile: the ring has two stages of 64 keys, beside which there is no room for a third.
//
// Blocks of all tiles are shared out to CTAs evenly (attention_turn.cuh), so that tiles which read the same keys read them at the same time. The parts of a tile that is cut are added up by who comes last (attention_split.cuh)
// or, where they are many, by a second kernel, whose warps have a row's 128 columns each. Masks, caches, pages, and rows that are computed again are as in sm90_attention.cuh.
#pragma once

#include "kernels/attention/sm90_attention.cuh"
#include "kernels/matrix/shared_products.cuh"

namespace rooftile {

inline constexpr int latent_meeting = 1;  ///< named barrier of both consumer warpgroups

/// Shared memory: Q, stages of K, P, barriers, what is told of this tile and the next, and what warpgroups tell each other of rows.
template <Sm90AttentionConfig C>
struct LatentShared {
    unsigned base;
    __device__ unsigned q() const { return base; }
    __device__ unsigned k(int stage) const { return base + C.q_bytes() + stage * C.k_bytes(); }
    __device__ unsigned p() const { return k(C.stages); }
    __device__ unsigned barriers() const { return p() + C.probability_bytes(); }
    __device__ Ring<1> q_ring() const { return {barriers()}; }
    __device__ Ring<C.stages> k_ring() const { return {barriers() + Ring<1>::bytes()}; }
    /// Consumers read it again at a tile's end, when the next one's may be there.
    __device__ unsigned told(unsigned turn) const { return barriers() + C.latent_barrier_bytes() + turn % 2 * C.told_bytes; }
    __device__ unsigned maxima(int warpgroup, int row) const {
        return barriers() + C.latent_barrier_bytes() + 2 * C.told_bytes + (warpgroup * C.warpgroup_q + row) * 4;
    }
    __device__ unsigned totals(int warpgroup, int row) const { return maxima(warpgroup, row) + C.row_numbers_bytes; }
    __device__ unsigned spoiled(int warpgroup, int warp) const { return maxima(0, 0) + 2 * C.row_numbers_bytes + (warpgroup * 4 + warp) * 4; }
};

/// The producer, one thread: a tile's Q, and block after block of keys, the first one before Q, whose place the tile before still holds.
template <Sm90AttentionConfig C>
__device__ void produce_latent(const LatentShared<C>& shared, const AttentionLoads<C>& loads) {
    using Tile = typename AttentionLoads<C>::Tile;
    const Ring<1> q_ring = shared.q_ring();
    const Ring<C.stages> k_ring = shared.k_ring();
    RingPosition<1> q_at;
    RingPosition<C.stages> at;
    unsigned tiles_told = 0;
    const auto tell = [&](unsigned number, const Tile& tile) {
        q_ring.acquire(q_at);
        loads.tell(shared.told(tiles_told++), number, tile);
    };
    const auto load = [&](const Tile& tile, int i) {
        k_ring.acquire(at);
        k_ring.expect(at.stage, loads.b_bytes(tile, i));
        loads.load_b(tile, i, shared.k(at.stage), k_ring.full(at.stage));
        at.advance();
    };
    ScheduleSlots<1, 1> alone;
    for (DynamicTileScheduler<1, 1> turn(alone, loads.counter(), loads.tiles()); turn.more(); turn.ask(), turn.advance()) {
        const Tile tile = loads.tile(turn.index());
        const int blocks = loads.blocks(tile);
        load(tile, 0);
        tell(turn.index(), tile);
        q_ring.expect(0, loads.a_bytes());
        loads.load_a(tile, shared.q(), q_ring.full(0));
        q_at.advance();
        for (int i = 1; i < blocks; ++i) load(tile, i);
    }
    tell(no_tile, {});
    q_ring.commit(0);
}

/// What both warpgroups together know of a thread's two rows.
struct LatentRows {
    float from[2], sum[2];
    __device__ float total(int half) const { return sum[half]; }
    __device__ bool lost(int half) const { return from[half] >= OnlineSoftmax::far || (from[half] == minus_infinity() && sum[half] == 0); }
};

/// A consumer warpgroup.
template <Sm90AttentionConfig C>
struct LatentConsumer {
    const LatentShared<C>& shared;
    const AttentionArguments& args;
    int warpgroup;
    FragmentPlace place{};
    int thread = static_cast<int>(threadIdx.x) - 128;  ///< of both warpgroups

    static constexpr int keys = C.keys_of_warpgroup(), columns = C.columns_of_warpgroup(), threads = 128 * C.latent_warpgroups;
    static constexpr bool hides = C.mask != AttentionMask::none;
    using Scores = float[keys / 2];
    using Sums = float[columns / 2];

    __device__ int first_column() const { return warpgroup * columns; }
    __device__ static void meet() { ptx::named_barrier_sync(latent_meeting, threads); }

    /// S of all rows and this warpgroup's keys, issued.
    __device__ void multiply_keys(float* scores, int stage) const {
        const unsigned k = shared.k(stage) + warpgroup * C.box_bytes(keys);
        multiply_by_columns<keys, C.dim, C.type>(scores, shared.q(), C.box_bytes(C.tile_q), k, C.box_bytes(C.tile_kv));
    }
    /// O += P V of all keys and this warpgroup's columns, issued.
    __device__ void multiply_values(float* sums, int stage) const {
        constexpr int boxes = columns / C.box_elements;
        const unsigned v = shared.k(stage) + warpgroup * boxes * C.box_bytes(C.tile_kv);
        multiply_by_rows<columns, C.tile_kv, C.type>(sums, shared.p(), C.box_bytes(C.tile_q), v, C.box_bytes(C.tile_kv));
    }
    /// Scores become probabilities, which count from the greatest of both warpgroups' keys. Whether some row's O is to be rescaled.
    __device__ bool take(OnlineSoftmax& softmax, Scores& scores, float (&shrink)[2]) const {
        float most[2] = {softmax.greatest(scores, 0), softmax.greatest(scores, 1)};
        if (threadIdx.x % 4 == 0)
#pragma unroll
            for (int half = 0; half < 2; ++half) ptx::store_shared_1(shared.maxima(warpgroup, place.row + 8 * half), most[half]);
        meet();
        bool rescales = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            most[half] = fmaxf(most[half], ptx::load_shared_float(shared.maxima(1 - warpgroup, place.row + 8 * half)));
            rescales |= softmax.count_row(scores, args.scale_log2, half, most[half] * args.scale_log2, shrink[half]);
        }
        return __any_sync(0xffffffff, rescales);
    }
    /// To where the next product reads its first operand: rows of 64 keys, swizzled.
    __device__ void write_probabilities(const Scores& scores) const {
#pragma unroll
        for (int j = 0; j < keys / 8; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = place.row + 8 * half, key = warpgroup * keys + 8 * j + place.column, chunk = key % C.box_elements / 8;
                const unsigned to = shared.p() + key / C.box_elements * C.box_bytes(C.tile_q) + row * C.swizzle_bytes + ((chunk ^ row % 8) * 8 + key % 8) * 2;
                ptx::store_shared_1(to, __uint_as_float(ptx::pack2<C.type>(scores[4 * j + 2 * half], scores[4 * j + 2 * half + 1])));
            }
    }
    /// Rows behind the last key of a cache are whatever was there, and 0 times a NaN is NaN. Scores are made by now.
    __device__ void clean_values(int stage, int left) const {
        if (left >= C.tile_kv) return;
        const float zeros[4] = {};
        constexpr int box_rows = C.boxes(C.dim_v) * C.tile_kv, pieces = C.swizzle_bytes / 16;
#pragma unroll 1
        for (int i = thread; i < box_rows * pieces; i += threads)
            if (i / pieces % C.tile_kv >= left) ptx::store_shared_4(shared.k(stage) + 16 * i, zeros);
    }

    __device__ void run() const {
        const Sm90AttentionTiles<C> tiles{args};
        const Ring<1> q_ring = shared.q_ring();
        const Ring<C.stages> k_ring = shared.k_ring();
        RingPosition<1> q_at;
        RingPosition<C.stages> at;
        for (unsigned turn = 0;; q_at.advance(), ++turn) {
            q_ring.wait(q_at);
            const unsigned told = shared.told(turn);
            if (ptx::load_shared(told) == no_tile) break;
            const Sm90AttentionPlace tile = tiles.told(told);
            const KeyBlocks blocks = tiles.blocks(tile), clear = tile.extent.clear(tile.q, C.tile_q, C.tile_kv);
            OnlineSoftmax softmax{};
            unsigned nan_rows = 0;
            Sums sums = {};
            for (int block = blocks.end - 1; block >= blocks.first; --block, at.advance()) {
                const bool masked = block >= clear.end || block < clear.first;
                Scores scores;
                k_ring.wait(at);
                ptx::wgmma_fence();
                multiply_keys(scores, at.stage);
                ptx::wgmma_commit();
                ptx::wgmma_wait<0>();
                ptx::wgmma_pin_all(scores);
                if (block == blocks.first) q_ring.release(0);  // the next tile's Q comes beside what is left
                if (masked)
                    hide<keys, C.mask == AttentionMask::window>(scores, tile.extent, tile.q + place.row, block * C.tile_kv + warpgroup * keys, place.column);
                float shrink[2];
                const bool rescales = take(softmax, scores, shrink);
                write_probabilities(scores);
                if constexpr (C.cache) clean_values(at.stage, max(0, tile.extent.keys - block * C.tile_kv));
                ptx::fence_async_proxy();
                if (rescales)
#pragma unroll
                    for (int i = 0; i < columns / 2; ++i) sums[i] *= shrink[i / 2 % 2];
                meet();
                ptx::wgmma_pin_all(sums);
                ptx::wgmma_fence();
                multiply_values(sums, at.stage);
                ptx::wgmma_commit();
                ptx::wgmma_wait<0>();
                ptx::wgmma_pin_all(sums);
                k_ring.release(at.stage);
                if (hides && masked) nan_rows |= nan_rows_of(sums);
            }
            finish(softmax, sums, nan_rows, told);
        }
    }

    /// O on its way out, or this part of it.
    __device__ void finish(const OnlineSoftmax& softmax, const Sums& sums, unsigned nan_rows, unsigned told) const {
        const Sm90AttentionTiles<C> tiles{args};
        const Sm90AttentionPlace at = tiles.told(told);
        const int warp = static_cast<int>(threadIdx.x % 128 / 32), end = tiles.end_row(at);
        LatentRows rows{{softmax.from[0], softmax.from[1]}, {softmax.total(0), softmax.total(1)}};
        if (threadIdx.x % 4 == 0)
#pragma unroll
            for (int half = 0; half < 2; ++half) ptx::store_shared_1(shared.totals(warpgroup, place.row + 8 * half), rows.sum[half]);
        unsigned spoiled = hides && __any_sync(0xffffffff, nan_rows != 0) ? rows_with_bits(nan_rows) : 0;
        if (hides && threadIdx.x % 32 == 0) ptx::store_shared_1(shared.spoiled(warpgroup, warp), __uint_as_float(spoiled));
        meet();
#pragma unroll
        for (int half = 0; half < 2; ++half)
            rows.sum[half] += ptx::load_shared_float(shared.totals(1 - warpgroup, place.row + 8 * half));
        if (hides) spoiled |= ptx::load_shared_word(shared.spoiled(1 - warpgroup, warp));

        // Rows that are computed again: `first`, and each `step` further.
        unsigned again = 0;
        int first = at.q + 16 * warp, step = 1;
        if (at.piece.parts > 1) {
            first = at.q + thread / 32, step = threads / 32;
            const SplitTile<C.dim_v, (C.piece > 0)> split{min(args.extent.queries, tiles.rows()), at.piece.first_part, at.piece.parts};
            leave_part(sums, rows, spoiled, args.partials, split, at.piece.part, place.row, place.column, first_column());
            if constexpr (C.combine_apart) return;
            if (!came_last(latent_meeting, threads, args.arrived + split.first_part, split.parts)) return;
#pragma unroll 1
            for (int row = first, bit = 1; row < end; row += step, bit *= 2)
                if (!add_up_row<C.type, C.most_splits()>(args, at.extent, at.tile, row, split, row - at.q)) again |= bit;
        } else {
            store<C>(sums, rows, args, at, at.q + place.row, first_column());
            const unsigned lost = (rows.lost(0) ? 1u : 0u) | (rows.lost(1) ? 2u : 0u);
            again = spoiled;
            if (__any_sync(0xffffffff, lost != 0)) again |= rows_with_bits(lost);
            meet();  // the other's columns of a row are stored, which is then one warp's
            if (warpgroup != 0) again = 0;
        }
        __syncwarp();
        constexpr int parts_a_lane = C.dim_v / 32;
#pragma unroll 1
        for (int i = 0; again != 0; ++i, again >>= 1)
            if ((again & 1) != 0 && first + i * step < end)
                attention_row<C.type, parts_a_lane>(args, at.extent, at.tile, first + i * step, PlainScore{});
    }
};

/// Adds up the parts of tile number blockIdx.x, where it has several, that `ctas` CTAs left; blockIdx.y counts rows and their columns.
template <Sm90AttentionConfig C>
__global__ void __launch_bounds__(C.combine_threads) sm90_latent_combine(const __grid_constant__ AttentionArguments args, int ctas) {
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    using Turns = typename Sm90AttentionTiles<C>::Turns;
    constexpr int chunks = C.dim_v / C.combine_columns, warps = C.combine_threads / 32, parts_a_lane = C.dim_v / 32;
    const Sm90AttentionTiles<C> tiles{args};
    const int q_tiles = tiles.q_tiles(), of_sequence = q_tiles * args.heads, tile = static_cast<int>(blockIdx.x), within = tile / args.batches, sequence = tile % args.batches;
    const AttentionPiece piece = Turns::of_tile(args, tiles.extent(), tile, of_sequence, C.tile_kv, ctas);
    if (piece.parts <= 1) return;
    const Sm90AttentionPlace at{{within % q_tiles, within / q_tiles, sequence}, Turns::extent_of(args, tiles.extent(), sequence), within % q_tiles * tiles.rows(), piece};
    const int unit = static_cast<int>(blockIdx.y) * warps + static_cast<int>(threadIdx.x / 32), row = unit / chunks, column = unit % chunks * C.combine_columns;
    if (at.q + row >= tiles.end_row(at)) return;
    const SplitTile<C.dim_v, (C.piece > 0)> split{min(args.extent.queries, tiles.rows()), piece.first_part, piece.parts};
    const bool added = add_up_row<C.type, C.most_splits(), C.dim_v, (C.piece > 0), C.combine_columns>(args, at.extent, at.tile, at.q + row, split, row, column);
    if (!added && column == 0) attention_row<C.type, parts_a_lane>(args, at.extent, at.tile, at.q + row, PlainScore{});
}

template <Sm90AttentionConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_latent_attention(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k, const __grid_constant__ AttentionArguments args) {
    static_assert(C.latent && C.split && C.grouped && C.tile_q == 64, "rows of one wgmma; tiles in pieces");
    static_assert(C.tile_kv % 32 == 0 && C.tile_kv <= 256 && C.dim % 16 == 0, "whole k-steps, and whole eights of scores a thread");
    static_assert(C.dim_v % 128 == 0 && C.dim_v <= 512 && C.dim_v <= C.dim, "each warpgroup has whole boxes of values, all of them in a key's row");
    extern __shared__ __align__(Sm90AttentionConfig::tile_alignment) unsigned char memory[];
    const LatentShared<C> shared{ptx::shared_address(memory)};
    if (shared.base % C.tile_alignment != 0) __trap();
    if (threadIdx.x == 0) {
        constexpr int warps = 4 * C.latent_warpgroups;
        shared.q_ring().init(1, warps);
        shared.k_ring().init(1, warps);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if (warpgroup() == 0) {
        typename Sm90AttentionTiles<C>::Turns turns;
        const AttentionLoads<C> loads{map_q, map_k, map_k, args, turns};
        if (threadIdx.x < 32) loads.prepare();
        if (begin_producer<C.producer_registers>()) produce_latent<C>(shared, loads);
    } else {
        begin_consumer<C.consumer_registers>();
        LatentConsumer<C>{shared, args, warpgroup() - 1}.run();
    }
}

}  // namespace rooftile
